"""All the ways to fail."""

from .._runtime import Layer

layer = Layer(__name__)

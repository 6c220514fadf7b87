"""The exchange of values inside a warp."""

from .._runtime import Layer

layer = Layer(__name__)

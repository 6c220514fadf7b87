"""Atomics from all blocks at once."""

from .._runtime import Layer

layer = Layer(__name__)

"""Kernel loops of which some may run as streams and some must not; the comment above each says which and why."""

from .._runtime import Layer

layer = Layer(__name__)

"""Kernel loops of which some may be vector loops and some must not; the comment above each says which and why."""

from .._runtime import Layer

layer = Layer(__name__)

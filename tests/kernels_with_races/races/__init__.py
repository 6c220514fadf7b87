"""Kernels whose threads meet at an element: some with a race, some without (tests/src/host/test_races.py)."""

from .._runtime import Layer

layer = Layer(__name__)

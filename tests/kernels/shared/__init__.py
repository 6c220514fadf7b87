"""Shared memory: static, dynamic, and dynamic declared outside of a function."""

from .._runtime import Layer

layer = Layer(__name__)

"""Conversions between float and the half types, on the device."""

from .._runtime import Layer

layer = Layer(__name__)

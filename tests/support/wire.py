"""Protobuf's bytes, written by hand."""

import struct


def field(number: int, value) -> bytes:
    """An integer, or a text, message or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # two's complement
    return (bytes([value & 127 | 128]) + varint(value >> 7)) if value > 127 else bytes([value])


def floats(*values: float) -> bytes:
    return struct.pack(f"{len(values)}f", *values)

"""Protobuf's bytes, written by hand."""

import ctypes
import struct

from google.protobuf.descriptor import FieldDescriptor


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


def of_other_types(message) -> bytes:
    """Each field of a message as bytes of another type, which makes it an unknown field."""
    contents = {0: b"\x01", 1: b"\x01" * 8, 2: b"\x01\x01", 5: b"\x01" * 4}
    wire = b""
    for one in message.DESCRIPTOR.fields:
        own = _WIRE_TYPES.get(one.type, 0)
        taken = (own, 2) if one.is_repeated else (own,)  # a run of numbers
        for other in contents.keys() - taken:
            wire += varint(one.number << 3 | other) + contents[other]
    return wire


_WIRE_TYPES = {
    number: wire
    for wire, names in {
        1: "DOUBLE FIXED64 SFIXED64",
        2: "STRING BYTES MESSAGE",
        5: "FLOAT FIXED32 SFIXED32",
    }.items()
    for number in (getattr(FieldDescriptor, f"TYPE_{name}") for name in names.split())
}


def shown_fields(message):
    """A program's output for a message's fields: each as it is; a number plus one, and cleared."""
    kind = message.DESCRIPTOR
    yield f"{kind.full_name} {kind.full_name} {kind.name} {len(kind.fields)}"
    for one in kind.fields:
        text = f"{one.name} {one.number} {one.index} {one.type} "
        text += f"{one.is_required:d}{one.is_repeated:d}{one.has_default_value:d}"
        if not one.is_repeated and one.type == one.TYPE_BOOL:
            text += f" {getattr(message, one.name):d} 0 1"
        elif not one.is_repeated and one.type in _C_TYPES:
            value = getattr(message, one.name)
            more = _C_TYPES[one.type](value + 1).value
            for has, number in (
                (message.HasField(one.name), value),
                (True, more),
                (False, one.default_value),
            ):
                text += f" {has:d} {number:.17g}" if isinstance(number, float) else f" {has:d} {number}"
        yield text


_C_TYPES = {
    getattr(FieldDescriptor, f"TYPE_{name}"): getattr(ctypes, f"c_{kind}")
    for name, kind in {
        "INT32": "int32", "SINT32": "int32", "SFIXED32": "int32", "UINT32": "uint32", "FIXED32": "uint32",
        "FLOAT": "float", "DOUBLE": "double",
    }.items()
}  # fmt: skip

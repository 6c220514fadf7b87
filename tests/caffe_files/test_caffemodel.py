"""Reading .caffemodel files into modules. On layers of caffe_zoo."""

import struct

import numpy as np
import pytest
import torch
from support.wire import field, floats, varint
from support.zoo import raises

from cuffi.base import CaffeValueError
from cuffi.caffe_files.caffemodel import blobs_of, stored_blob, stored_layers
from cuffi.nets.net.messages import STOCK


@pytest.mark.parametrize(("kind", "letter"), [(0, "d"), (1, "f"), (2, "e")])
def test_raw_data(tmp_path, kind, letter):
    """NVCaffe's and OpenCV's blobs: bytes, and a number for their type."""
    values = [0.5, -2, 65504, 3]
    blob = field(7, field(1, b"\2\2")) + field(10, kind) + field(12, struct.pack(f"<4{letter}", *values))
    path = tmp_path / "net.caffemodel"
    path.write_bytes(field(100, field(1, "a") + field(7, blob)))
    ((stored, read),) = blobs_of(path, "a")
    assert read.tolist() == [[0.5, -2], [65504, 3]] and stored.dtype.itemsize == struct.calcsize(letter)
    for damaged, words in ((field(10, 3), "raw data of type 3"), (field(10, kind), "a blob of shape")):
        blob = field(7, field(1, b"\3")) + damaged + field(12, struct.pack(f"<2{letter}", 1, 2))
        path.write_bytes(field(100, field(1, "a") + field(7, blob)))
        with pytest.raises(CaffeValueError, match=words):
            stored_layers(path)


def test_caffemodel(zoo, tmp_path):
    new = [
        field(5, floats(1, 2, 3)) + field(7, field(1, b"\3")),
        b"".join(varint(5 << 3 | 5) + floats(v) for v in (4, 5, 6)) + field(7, field(1, 3)),
    ]
    old = [
        field(1, 1) + field(2, 1) + field(3, 1) + field(4, 3) + field(5, floats(*v))
        for v in ((7, 8, 9), (1, 1, 1))
    ]
    net = field(100, field(1, "data")) + field(
        100, field(1, "a") + field(2, "Affine") + b"".join(field(7, b) for b in new)
    )
    net += field(2, field(4, "b") + b"".join(field(6, b) for b in old))
    # Caffe's first format: name and blobs in a message within the layer; a blob in double
    eight = b"".join(struct.pack("d", v) for v in (2, 2, 2))
    first = [field(8, eight) + field(7, field(1, 3)), old[1]]
    net += field(2, field(1, field(1, "v0") + b"".join(field(50, b) for b in first)))
    path = tmp_path / "net.caffemodel"
    path.write_bytes(field(1, "net") + net)
    m = zoo.Affine().load_caffemodel(path, "a")
    assert m.blob0.tolist() == [1, 2, 3] and m.blob1.tolist() == [4, 5, 6]
    assert m(torch.ones(1, 3)).tolist() == [[5, 7, 9]]
    assert m.load_caffemodel(path, "b").blob0.tolist() == [7, 8, 9]  # into blobs that are there
    m = zoo.Affine().load_caffemodel(path, "b")  # four axes, as old files have it
    assert m(torch.ones(1, 3)).tolist() == [[8, 9, 10]] and m.blob0.shape == (3,)
    assert m.load_caffemodel(path, "v0").blob0.tolist() == [2, 2, 2]
    with raises(CaffeValueError, "no layer 'c'", "data, a, b, v0"):
        m.load_caffemodel(path, "c")
    with raises(CaffeValueError, "0 blobs for 'data'", "has 2"):
        m.load_caffemodel(path, "data")
    path.write_bytes(net[:-2])
    with raises(CaffeValueError, "net.caffemodel: not a .caffemodel"):
        m.load_caffemodel(path, "a")


@pytest.mark.parametrize(
    "dims",
    [[-1, -3], [1 << 62, 12], [(1 << 63) - 1] * 2, [0, 1 << 40], [4], [], [1 << 31, 0], [-(1 << 40), 3]],
    ids=str,
)
def test_caffemodel_whose_sizes_lie(zoo, tmp_path, dims):
    blob = field(5, floats(*range(3 if 0 not in dims else 0))) + field(7, b"".join(field(1, d) for d in dims))
    path = tmp_path / "net.caffemodel"
    path.write_bytes(field(100, field(1, "a") + field(7, blob)))
    with raises(CaffeValueError, r"net.caffemodel: not a .caffemodel: offset \d+: a blob of shape", "values"):
        zoo.Affine().load_caffemodel(path, "a")


def test_caffemodel_with_names_in_another_encoding(zoo, tmp_path):
    blobs = b"".join(field(7, field(5, floats(*v)) + field(7, field(1, 3))) for v in ((1, 2, 3), (4, 5, 6)))
    path = tmp_path / "net.caffemodel"
    path.write_bytes(field(100, field(1, "卷积".encode("gbk")) + blobs) + field(100, field(1, "b") + blobs))
    assert zoo.Affine().load_caffemodel(path, "b").blob0.tolist() == [1, 2, 3]
    with raises(CaffeValueError, r"net.caffemodel: no layer 'c'. There are: \\xbe\\xed\\xbb\\xfd, b"):
        zoo.Affine().load_caffemodel(path, "c")
    assert zoo.Affine().load_caffemodel(path, r"\xbe\xed\xbb\xfd").blob1.tolist() == [4, 5, 6]


def dims(*sizes: int) -> bytes:
    return field(7, b"".join(field(1, n) for n in sizes))


def doubles(*values: float) -> bytes:
    return struct.pack(f"{len(values)}d", *values)


BLOBS = {
    "packed": dims(3) + field(5, floats(1, 2, 3)),
    "in two runs": field(5, floats(1, 2)) + dims(3) + field(5, floats(3)),
    "an empty run": field(5, b"") + dims(1) + field(5, floats(3)),
    "one by one": b"".join(varint(5 << 3 | 5) + floats(v) for v in (4, 5)) + dims(2),
    "doubles": dims(2) + field(8, doubles(0.1, 0.2)),
    "doubles one by one": b"".join(varint(8 << 3 | 1) + doubles(v) for v in (0.1, 0.2)) + dims(1, 2),
    "packed sizes": field(7, field(1, varint(2) + varint(1))) + field(5, floats(1, 2)),
    "32 axes": dims(*[1] * 32) + field(5, floats(7)),
    "none": dims(2**31 - 1, 0),
    "a number": field(7, b"") + field(5, floats(7)),
    "four sizes": b"".join(field(i, n) for i, n in ((1, 1), (2, 2), (3, 1), (4, 2)))
    + field(5, floats(1, 2, 3, 4)),
    "a diff": dims(1) + field(5, floats(1)) + field(6, floats(9)) + field(9, doubles(8)),
    "a long number": field(5, floats(1)) + field(7, field(1, 1)[:1] + b"\x81" + b"\x80" * 8 + b"\0"),
}


@pytest.mark.parametrize("name", BLOBS)
def test_blobs_as_protobuf_reads_them(tmp_path, name):
    path = tmp_path / "a.binaryproto"
    path.write_bytes(BLOBS[name])
    message = STOCK.message("BlobProto")
    message.ParseFromString(BLOBS[name])
    legacy = [message.num, message.channels, message.height, message.width]
    stored = stored_blob(path)
    assert stored.shape == tuple(message.shape.dim if message.HasField("shape") else legacy)
    with open(path, "rb") as file:
        values = stored.read(file)
    wanted = message.double_data or message.data
    assert stored.count == len(wanted) and values.shape == stored.shape
    assert values.dtype == (torch.float64 if message.double_data else torch.float32)
    assert np.array_equal(values.numpy().ravel(), np.array(wanted, values.numpy().dtype))


@pytest.mark.parametrize(
    "data, said",
    [
        (dims(*[1] * 33) + field(5, floats(7)), "a blob of more than 32 axes"),
        (field(5, b"123456"), "6 bytes, not a whole number of values"),
        (field(8, b"123456789012"), "12 bytes, not a whole number of values"),
        (field(8, doubles(1)) + dims(2), r"a blob of shape \[2\] has 1 values"),
        (dims(2**31, 0), r"a blob of shape \[2147483648, 0\]"),
        (dims(-1, 0), r"a blob of shape \[-1, 0\]"),
        (field(1, 1) + field(5, floats(1)), r"a blob of shape \[1, 0, 0, 0\] has 1"),
        (b"\x2b", "a field of wire type 3"),
        (b"\x2c", "a field of wire type 4"),
        (b"\x08\x01\x2e", "a field of wire type 6"),
        (b"\x2f", "a field of wire type 7"),
        (b"\x02\x00", "a field of 0 bytes where 0 are left"),
        (b"\x2a\x04123", "a field of 4 bytes where 3 are left"),
        (b"\x2d\x0123", "a field of 4 bytes where 3 are left"),
        (b"\x41\x01234567", "a field of 8 bytes where 7 are left"),
        (b"\x08" + b"\x80" * 10 + b"\0", "a number without its end"),
        (b"\x08\x80", "a number without its end"),
    ],
)
def test_bytes_that_are_no_blob(tmp_path, data, said):
    path = tmp_path / "a.binaryproto"
    path.write_bytes(data)
    with raises(CaffeValueError, f"a.binaryproto: not a .binaryproto: .*{said}"):
        stored_blob(path)


def test_layers_without_a_name(tmp_path):
    """Layers without a name are matched by position."""
    blob, path = field(7, dims(1) + field(5, floats(1))), tmp_path / "a.caffemodel"
    path.write_bytes(field(100, blob) + field(100, b"") + field(100, varint(1 << 3) + b"\x05" + blob))
    layers = stored_layers(path)
    first = len(field(100, blob)) - len(blob)
    third = len(field(100, blob)) + len(field(100, b"")) + first
    assert [(one.name, len(one.blobs)) for one in layers] == [
        (f"(layer at offset {first})", 1), ("", 0), (f"(layer at offset {third})", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("first", [0, 1])
def test_two_layers_of_a_name(tmp_path, first):
    """One is for training and one for testing. The one with blobs is read."""
    path, name = tmp_path / "a.caffemodel", field(1, b"ip")
    without, with_blob = field(100, name), field(100, name + field(7, dims(1) + field(5, floats(4))))
    path.write_bytes(b"".join([without, with_blob] if first else [with_blob, without]))
    assert [values.tolist() for _, values in blobs_of(path, "ip")] == [[4.0]]


def test_a_file_that_becomes_shorter(tmp_path):
    path = tmp_path / "a.binaryproto"
    path.write_bytes(BLOBS["packed"])
    stored = stored_blob(path)
    path.write_bytes(BLOBS["packed"][:-1])
    with open(path, "rb") as file, raises(CaffeValueError, "became shorter while it was read"):
        stored.read(file)

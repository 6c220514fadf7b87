"""Reading .caffemodel files into modules. On layers of caffe_zoo."""

import struct

import pytest
import torch
from support.wire import field, floats, varint
from support.zoo import raises

from layers._runtime import CaffeValueError


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

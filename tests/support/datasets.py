"""Small sets of images, as databases, and a net that reads one."""

import numpy as np
import pytest

from cuffi import caffe_net
from cuffi.nets.pycaffe.proto import caffe_pb2

SILENCE = 'layer { name: "s" type: "Silence" bottom: "data" bottom: "label" }'


def images(count: int, channels=3, height=6, width=5) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (count, channels, height, width), np.uint8)


def write_lmdb(path, values) -> None:
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(path), map_size=1 << 22) as env, env.begin(write=True) as transaction:
        for key, value in values.items():
            transaction.put(key, value)


def datums(array: np.ndarray) -> dict[bytes, bytes]:
    found = {}
    for i, image in enumerate(array):
        c, h, w = image.shape
        datum = caffe_pb2.Datum(channels=c, height=h, width=w, data=image.tobytes(), label=i)
        found[b"%08d" % i] = datum.SerializeToString()
    return found


def net(folder, layer: str, phase="TEST", **options):
    (folder / "net.prototxt").write_text(layer + SILENCE)
    return caffe_net(folder / "net.prototxt", phase=phase, **options)

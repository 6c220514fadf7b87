"""LMDB files, compared with the package lmdb, also damaged ones and ones that a program has open."""

import random

import numpy as np
import pytest
import torch
from support.datasets import SILENCE, datums, images, net, write_lmdb

from cuffi import CaffeValueError, caffe, caffe_net
from cuffi.nets.data.lmdb_file import LMDBError, LMDBFile

lmdb = pytest.importorskip("lmdb")
PARAM = 'data_param { source: "db" batch_size: 2 backend: LMDB }'
DATA = f'layer {{ name: "d" type: "Data" top: "data" top: "label" {PARAM} }}'


@pytest.mark.parametrize(("count", "size"), [(0, 1), (3, 10), (4000, 30), (300, 9000)])
def test_it_reads_what_lmdb_wrote(count, size, tmp_path):
    """Several transactions, with deletions; branch pages, and values with pages of their own."""
    numbers, held = random.Random(count), {}
    with lmdb.open(str(tmp_path), map_size=1 << 26) as env:
        for _ in range(3):
            with env.begin(write=True) as transaction:
                for i in range(count):
                    key = b"%d_%d" % (numbers.randrange(10**6), i)
                    held[key] = numbers.randbytes(numbers.randrange(size))
                    transaction.put(key, held[key])
                for key in numbers.sample(sorted(held), len(held) // 3):
                    transaction.delete(key)
                    del held[key]
    file = LMDBFile(str(tmp_path))
    assert [(file.key(place), file.value(place)) for place in file.places()] == sorted(held.items())
    assert file.count == len(held)


def test_damage_is_an_error_or_harmless(tmp_path):
    """Any bytes: every read ends, without a crash."""
    write_lmdb(tmp_path / "db", {b"%04d" % i: bytes(i % 90) for i in range(500)})
    whole, numbers, refused = (tmp_path / "db" / "data.mdb").read_bytes(), random.Random(1), 0
    for _ in range(150):
        broken = bytearray(whole)
        for _ in range(numbers.choice((1, 20, 2000))):
            broken[numbers.randrange(len(broken))] = numbers.randrange(256)
        (tmp_path / "broken").write_bytes(broken)
        try:
            file = LMDBFile(str(tmp_path / "broken"))
            for _, place in zip(range(2000), file.places(), strict=False):
                file.key(place), file.value(place)
        except LMDBError:
            refused += 1
    assert refused > 20


def test_a_program_may_have_it_open(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_lmdb("db", datums(images(4)))
    with lmdb.open("db") as env:
        made = caffe.Net(DATA + SILENCE, caffe.TEST)
        made.forward()
        assert made.blobs["label"].data.tolist() == [0, 1]
        assert env.stat()["entries"] == 4
    with lmdb.open("db", readonly=True) as env, env.begin() as transaction:  # after the net has opened it
        assert transaction.stat()["entries"] == 4
    made.forward()
    assert made.blobs["label"].data.tolist() == [2, 3]


def test_workers_of_any_kind_read_it(tmp_path):
    write_lmdb(tmp_path / "db", datums(images(4)))
    loaders = net(tmp_path, DATA).data_loaders(passes=1, workers=2)
    batches = [batch["data"] for batch in loaders["d"]]
    assert torch.cat(batches).numpy().tolist() == images(4).astype(np.float32).tolist()


def test_entries_that_are_no_values_are_refused(tmp_path):
    with lmdb.open(str(tmp_path / "db"), max_dbs=1) as env:
        env.open_db(b"inner")
    with pytest.raises(CaffeValueError, match="not a plain value"):
        (tmp_path / "net.prototxt").write_text(DATA + SILENCE)
        made = caffe_net(
            tmp_path / "net.prototxt", phase="TEST", shapes={"data": (2, 1, 1, 1), "label": (2,)}
        )
        next(iter(made.data_loaders()["d"]))

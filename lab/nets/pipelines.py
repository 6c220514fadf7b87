"""How long a data layer takes for an image, beside a Dataset that is written by hand for it.

    python -m lab.nets.pipelines [--turns 12]

LMDB: crop, mirror and scale, one process, both in turns, in processor time. HDF5 with gzip: rows a second, and h5py's
own, read at once.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import h5py
import lmdb
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from cuffi import caffe_net
from cuffi.nets.pycaffe.proto import caffe_pb2

IMAGES, SIZE, CROP, BATCH, SCALE = 3000, 64, 56, 50, 1 / 256
POOL = 'layer { name: "p" type: "Pooling" bottom: "data" top: "p" pooling_param { pool: AVE global_pooling: true } }'


class ByHand(Dataset):
    """What one would write for this LMDB alone."""

    def __init__(self, path: str):
        self.path, self.entries = path, None

    def __len__(self) -> int:
        return IMAGES

    def __getitem__(self, index: int):
        if self.entries is None:
            self.entries = lmdb.open(self.path, readonly=True, lock=False).begin(buffers=True)
        entry = self.entries.get(f"{index:08d}".encode())
        if entry is None:
            raise IndexError(index)
        datum = caffe_pb2.Datum()
        datum.ParseFromString(bytes(entry))
        image = np.frombuffer(datum.data, np.uint8).reshape(3, SIZE, SIZE)
        top, left = np.random.randint(0, SIZE - CROP + 1, 2)
        image = image[:, top : top + CROP, left : left + CROP]
        image = image[:, :, ::-1] if np.random.rand() < 0.5 else image
        return torch.from_numpy(image.astype(np.float32) * np.float32(SCALE)), datum.label


def seconds(batches) -> float:
    begin = time.process_time()
    for _ in batches:
        pass
    return time.process_time() - begin


def loader(layer: str):
    return caffe_net(
        f"layer {{ name: 'data' top: 'data' top: 'label' {layer} }}\n{POOL}", phase="TRAIN"
    ).data_loaders(passes=1)["data"]


def images(folder: str, turns: int) -> None:
    draw = np.random.default_rng(0)
    with lmdb.open(folder, map_size=1 << 30) as environment, environment.begin(write=True) as entries:
        for i in range(IMAGES):
            datum = caffe_pb2.Datum(channels=3, height=SIZE, width=SIZE, label=i % 10)
            datum.data = draw.integers(0, 256, (3, SIZE, SIZE), dtype=np.uint8).tobytes()
            entries.put(f"{i:08d}".encode(), datum.SerializeToString())
    ours = loader(
        f"type: 'Data' data_param {{ source: '{folder}' batch_size: {BATCH} backend: LMDB }} "
        f"transform_param {{ scale: {SCALE} mirror: true crop_size: {CROP} }}"
    )
    theirs = DataLoader(ByHand(folder), batch_size=BATCH)
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(turns)]
    for word, of in (("median", statistics.median), ("least", min)):
        mine, by_hand = (of(column) / IMAGES * 1e6 for column in zip(*pairs, strict=True))
        print(
            f"LMDB, {word}: {mine:.1f} us an image, by hand {by_hand:.1f}, {mine / by_hand:.2f} times as long"
        )


def rows(folder: Path, count: int = 2000) -> None:
    with h5py.File(folder / "x.h5", "w") as file:
        data = np.random.default_rng(0).random((count, 3, 32, 32), dtype=np.float32)
        file.create_dataset("data", data=data, compression="gzip", chunks=(500, 3, 32, 32))
        file.create_dataset("label", data=np.zeros(count, np.float32))
    (folder / "list.txt").write_text(f"{folder / 'x.h5'}\n")
    ours = seconds(
        loader(f"type: 'HDF5Data' hdf5_data_param {{ source: '{folder / 'list.txt'}' batch_size: {BATCH} }}")
    )
    begin = time.process_time()
    with h5py.File(folder / "x.h5") as file:
        file["data"][:]
    print(f"HDF5, gzip: {count / ours:,.0f} rows a second, h5py {count / (time.process_time() - begin):,.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=12)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        images(f"{place}/lmdb", asked.turns)
        rows(Path(place))

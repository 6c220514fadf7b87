"""The transformations of an image: crops and mirrors."""

import itertools
import pickle
import re
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
import torch
from support.datasets import datums, images, net, write_lmdb
from support.typed import not_none

from cuffi.nets.data.loader import data_loaders
from cuffi.nets.pycaffe.io import array_to_blobproto


def test_training_crops_and_mirrors_at_random(tmp_path):
    """Each crop is part of the image, or its mirror image; the same with workers, and from any start."""
    array = images(5, channels=1)
    write_lmdb(tmp_path / "db", datums(array))
    made = net(
        tmp_path,
        'layer { name: "d" type: "Data" top: "data" top: "label" '
        'data_param { source: "db" batch_size: 2 backend: LMDB } transform_param { crop_size: 4 mirror: true } }',
        "TRAIN",
    )
    batches = list(itertools.islice(made.data_loaders(seed=3)["d"], 30))
    places = set()
    for batch in batches:
        for crop, label in zip(batch["data"].numpy(), batch["label"].int().tolist(), strict=True):
            image = array[label].astype(np.float32)
            found = [
                (top, left, mirror)
                for top in range(3)
                for left in range(2)
                for mirror in (1, -1)
                if np.array_equal(image[:, top : top + 4, left : left + 4][:, :, ::mirror], crop)
            ]
            assert found
            places.add(found[0])
    assert len(places) == 12
    for again in (data_loaders(made, seed=3, workers=1), data_loaders(made, seed=3, start=4)):
        first = next(iter(again["d"]))
        same = batches[4 if again["d"].num_workers == 0 else 0]
        assert torch.equal(first["data"], same["data"])
    other = next(iter(data_loaders(made, seed=4, start=4)["d"]))
    assert not torch.equal(other["data"], batches[4]["data"])
    parts = [data_loaders(made, seed=3, rank=rank, world=2)["d"] for rank in (0, 1)]
    for batch, wanted in zip(
        (b for pair in zip(*parts, strict=False) for b in pair), batches[:6], strict=False
    ):
        assert torch.equal(batch["data"], wanted["data"])


@pytest.mark.parametrize("mean", ["", "mean_value: 3 scale: 0.5"])
def test_spawned_workers_read_the_same(tmp_path, mean):
    """Windows and macOS spawn workers, and Python 3.14 does not fork them: what they get is pickled."""
    pytest.importorskip("cv2")
    (tmp_path / "a.ppm").write_bytes(b"P6 6 6 255\n" + images(1, 3, 6, 6).tobytes())
    (tmp_path / "list.txt").write_text("a.ppm 0\n" * 2)
    made = net(
        tmp_path,
        'layer { name: "d" type: "ImageData" top: "data" top: "label" '
        f'image_data_param {{ source: "list.txt" batch_size: 2 }} transform_param {{ crop_size: 4 {mean} }} }}',
        "TRAIN",
    )
    loader = data_loaders(made, seed=3)["d"]
    parts = loader.dataset, loader.collate_fn, data_loaders(made, seed=3, workers=1)["d"].worker_init_fn
    data, collate, _ = pickle.loads(ForkingPickler.dumps(parts))
    batch = next(iter(not_none(loader.batch_sampler)))
    for top, value in collate([data[index] for index in batch]).items():
        assert torch.equal(value, next(iter(loader))[top])


WRONG = {
    "a.npy": (lambda path: np.save(path, np.zeros((3, 6, 5))), "numpy.load reads it. A mean_file holds"),
    "a.txt": (lambda path: path.write_text("104 117 123\n"), "it is text, and begins with '104 117 123'. A mean_file"),
    "a.png": (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(99)), "it is a PNG image. A mean_file holds"),
    "gray": (lambda path: proto(path, 1, 1, 6, 5), "a mean of [1, 6, 5] for an image of [3, 6, 5]: they must agree"),
    "flat": (lambda path: proto(path, 6, 5), "a mean of [6, 5] for an image of [3, 6, 5]"),
    "small": (lambda path: proto(path, 1, 3, 3, 3), "a mean of [3, 3, 3] for an image of [3, 6, 5]"),
}  # fmt: skip


def proto(path, *shape):
    path.write_bytes(array_to_blobproto(np.ones(shape)).SerializeToString())


@pytest.mark.parametrize("name", WRONG)
def test_a_mean_file_of_another_kind(name, tmp_path):
    """The layer, the field, what the file is, and what it should be."""
    write, words = WRONG[name]
    write_lmdb(tmp_path / "db", datums(images(2)))
    write(tmp_path / name)
    text = (
        'layer { name: "d" type: "Data" top: "data" top: "label" '
        f'data_param {{ source: "db" batch_size: 2 backend: LMDB }} transform_param {{ mean_file: "{name}" }} }}'
    )
    with pytest.raises(ValueError, match=re.escape(words)) as raised:
        next(iter(net(tmp_path, text, shapes={"data": (2, 3, 6, 5), "label": (2,)}).data_loaders()["d"]))
    assert "layer 'd' (Data), line 1: " in str(raised.value)

"""The sources of data layers, on small generated sets: LMDB, LevelDB, lists of images, HDF5."""

import itertools

import numpy as np
import pytest
import torch
from support.datasets import SILENCE, datums, images, net, write_lmdb

from cuffi import caffe_net
from cuffi.nets.pycaffe.proto import caffe_pb2


def write_leveldb(path, values) -> None:
    plyvel = pytest.importorskip("plyvel")
    database = plyvel.DB(str(path), create_if_missing=True)
    for key, value in values.items():
        database.put(key, value)
    database.close()


@pytest.mark.parametrize(("backend", "write"), [("LMDB", write_lmdb), ("LEVELDB", write_leveldb)])
def test_a_database(backend, write, tmp_path):
    """Batches follow the keys, and start again at the end; (x - mean) * scale of the centre crop, in TEST."""
    array = images(7)
    write(tmp_path / "db", datums(array))
    made = net(
        tmp_path,
        'layer { name: "d" type: "Data" top: "data" top: "label" '
        f'data_param {{ source: "db" batch_size: 4 backend: {backend} }} '
        "transform_param { crop_size: 3 scale: 0.5 mean_value: 10 mean_value: 20 mean_value: 30 } }",
    )
    assert made.shapes["data"] == (4, 3, 3, 3) and made.shapes["label"] == (4,)
    batches = list(itertools.islice(made.data_loaders()["d"], 3))
    labels = torch.cat([batch["label"] for batch in batches])
    assert labels.tolist() == [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4]
    mean = np.array([10, 20, 30], np.float64)[:, None, None]
    expected = (array[[0, 1, 2, 3]].astype(np.float64) - mean)[:, :, 1:4, 1:4] * 0.5
    torch.testing.assert_close(batches[0]["data"].double(), torch.from_numpy(expected))
    counts = [len(batch["label"]) for batch in made.data_loaders(passes=1)["d"]]
    assert counts == [4, 3]


def test_a_list_of_images(tmp_path):
    """Decoded and resized by OpenCV, channels in the order BGR; a shuffled list has a new order in each pass."""
    cv2 = pytest.importorskip("cv2")
    array = images(4).transpose(0, 2, 3, 1)
    lines = []
    for i, image in enumerate(array):
        cv2.imwrite(str(tmp_path / f"an image {i}.png"), np.ascontiguousarray(image))
        lines.append(f"an image {i}.png {i}\n")
    (tmp_path / "list.txt").write_text("".join(lines))
    text = (
        'layer { name: "d" type: "ImageData" top: "data" top: "label" image_data_param '
        f'{{ source: "list.txt" root_folder: "{tmp_path}/" batch_size: 4 %s }} }}'
    )
    batch = next(iter(net(tmp_path, text % "new_height: 3 new_width: 4").data_loaders()["d"]))
    expected = np.stack([cv2.resize(image, (4, 3)) for image in array]).transpose(0, 3, 1, 2)
    assert np.array_equal(batch["data"].numpy(), expected.astype(np.float32))
    grey = next(iter(net(tmp_path, text % "is_color: false").data_loaders()["d"]))
    assert grey["data"].shape == (4, 1, 6, 5)
    shuffled = net(tmp_path, text % "shuffle: true").data_loaders(passes=8)["d"]
    orders = [tuple(batch["label"].int().tolist()) for batch in shuffled]
    assert len(set(orders)) > 1 and {tuple(sorted(order)) for order in orders} == {(0, 1, 2, 3)}


def test_hdf5_files_follow_each_other(tmp_path):
    h5py = pytest.importorskip("h5py")
    for number, rows in enumerate((2, 3)):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file["data"] = np.arange(rows * 2).reshape(rows, 2) + 10 * number
            file["label"] = np.arange(rows) + 10 * number
    (tmp_path / "list.txt").write_text("0.h5\n1.h5\n")
    text = (
        'layer { name: "d" type: "HDF5Data" top: "data" top: "label" '
        'hdf5_data_param { source: "list.txt" batch_size: 4 } }'
    )
    made = net(tmp_path, text)
    first, second = itertools.islice(made.data_loaders()["d"], 2)
    assert first["label"].tolist() == [0, 1, 10, 11] and second["label"].tolist() == [12, 0, 1, 10]
    assert first["data"].tolist() == [[0, 1], [2, 3], [10, 11], [12, 13]]
    with h5py.File(tmp_path / "1.h5", "a") as file:
        del file["label"]
    with pytest.raises(ValueError, match=r"layer 'd' \(HDF5Data\), line 1: .*1\.h5: no dataset 'label'"):
        made.data_loaders()


DATA = 'layer {{ name: "d" type: "{}" top: "data" top: "label" {} }}'


@pytest.mark.parametrize(
    ("kind", "param", "words"),
    [
        ("Data", 'data_param { source: "none" batch_size: 1 backend: LMDB }', "no such file: none"),
        ("Data", 'data_param { source: "cut" batch_size: 1 backend: LMDB }', "cut off: it has 5000 bytes"),
        ("Data", 'data_param { source: "torn" batch_size: 1 backend: LMDB }', "torn/data.mdb is cut off"),
        ("Data", 'data_param { source: "odd" batch_size: 1 backend: LMDB }', "key 'k': not a Datum"),
        ("Data", 'data_param { source: "few" batch_size: 1 backend: LMDB }', "key 'k': 3 values for"),
        (
            "Data",
            'data_param { source: "db" batch_size: 1 backend: LEVELDB }',
            "db: not a LevelDB: it has no file",
        ),
        ("Data", "data_param { batch_size: 1 }", "it names no source"),
        (
            "Data",
            'data_param { source: "db" batch_size: 0 backend: LMDB }',
            "batch_size: expected more than 0",
        ),
        (
            "Data",
            'data_param { source: "db" batch_size: 1 backend: LMDB } transform_param { crop_size: 9 }',
            "crop_size 9 of an image of 6 x 5 pixels",
        ),
        (
            "Data",
            'data_param { source: "db" batch_size: 1 backend: LMDB } transform_param { mean_value: 1 mean_value: 2 }',
            r"a mean of \[2, 1, 1\] for an image of \[3, 6, 5\]",
        ),
        (
            "ImageData",
            'image_data_param { source: "list.txt" batch_size: 1 }',
            "list.txt, line 1: expected a path",
        ),
        ("WindowData", 'window_data_param { source: "x" batch_size: 1 }', "WindowData is not read"),
    ],
)
def test_refusals(kind, param, words, tmp_path):
    """The message names the layer, its line and the file. Nothing is written to a folder that is not a LevelDB."""
    if "LEVELDB" in param:
        pytest.importorskip("plyvel")
    write_lmdb(tmp_path / "db", datums(images(2)))
    write_lmdb(tmp_path / "odd", {b"k": b"\xff\xff\xff"})
    write_lmdb(
        tmp_path / "few",
        {b"k": caffe_pb2.Datum(channels=1, height=2, width=2, data=b"abc").SerializeToString()},
    )
    for name, size in (("cut", 5000), ("torn", -4096)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.mdb").write_bytes((tmp_path / "db" / "data.mdb").read_bytes()[:size])
    (tmp_path / "list.txt").write_text("no-label\n")
    (tmp_path / "net.prototxt").write_text(DATA.format(kind, param) + SILENCE)
    made = caffe_net(tmp_path / "net.prototxt", phase="TEST", shapes={"data": (1, 3, 6, 5), "label": (1,)})
    with pytest.raises(ValueError, match=words) as raised:
        next(iter(made.data_loaders()["d"]))
    assert "line 1" in str(raised.value)
    assert not [*tmp_path.rglob("LO[CG]*")]


def test_a_compressed_hdf5_file_is_read_once(tmp_path, monkeypatch):
    """gzip in chunks of many rows: each file is opened once in a pass, shuffled or not, and no row is lost."""
    h5py = pytest.importorskip("h5py")
    rows = np.arange(60, dtype=np.float32).reshape(60, 1)
    for i in range(3):
        with h5py.File(tmp_path / f"{i}.h5", "w") as file:
            part = rows[20 * i : 20 * i + 20]
            file.create_dataset("data", data=part, chunks=(10, 1), compression="gzip")
            file["label"] = part[:, 0]
    (tmp_path / "list.txt").write_text("0.h5\n1.h5\n2.h5\n")
    text = (
        'layer { name: "d" type: "HDF5Data" top: "data" top: "label" '
        'hdf5_data_param { source: "list.txt" batch_size: 7 shuffle: %s } }'
    )
    opened, original = [], h5py.File
    for shuffled in ("true", "false"):
        loader = net(tmp_path, text % shuffled).data_loaders(passes=1)["d"]
        opened.clear()
        monkeypatch.setattr(
            h5py, "File", lambda path, *a, **k: opened.append(path) or original(path, *a, **k)
        )
        got = torch.cat([batch["label"] for batch in loader]).tolist()
        monkeypatch.setattr(h5py, "File", original)
        assert len(opened) == 3 and sorted(got) == rows[:, 0].tolist()
        assert (got == sorted(got)) == (shuffled == "false")


def test_lists_with_tabs_and_rand_skip(tmp_path):
    cv2 = pytest.importorskip("cv2")
    for i in range(5):
        cv2.imwrite(str(tmp_path / f"{i}.png"), np.full((2, 2, 3), i, np.uint8))
    (tmp_path / "list.txt").write_text("".join(f"{i}.png\t{i}\n" for i in range(5)))
    text = (
        'layer { name: "d" type: "ImageData" top: "data" top: "label" image_data_param { source: "list.txt" '
        f'root_folder: "{tmp_path}/" batch_size: 5 rand_skip: %d }} }}'
    )
    starts = set()
    made = net(tmp_path, text % 3)
    for seed in range(12):
        labels = next(iter(made.data_loaders(seed=seed)["d"]))["label"].tolist()
        starts.add(labels[0])
        assert labels == [(labels[0] + k) % 5 for k in range(5)]
    assert starts == {0, 1, 2}  # Caffe: a random number below rand_skip
    assert next(iter(made.data_loaders(passes=1)["d"]))["label"][0] == 0
    with pytest.raises(ValueError, match="rand_skip: 6 of 5 images"):
        next(iter(net(tmp_path, text % 6).data_loaders()["d"]))
    (tmp_path / "list.txt").write_text("none.png\t1\n")
    (tmp_path / "net.prototxt").write_text(text % 0 + SILENCE)
    with pytest.raises(ValueError, match=r"list\.txt, line 1: .*no such file: .*none\.png"):
        next(iter(caffe_net(tmp_path / "net.prototxt", phase="TEST", shapes={"data": (1, 3, 2, 2), "label": (1,)})
                  .data_loaders()["d"]))  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "param"),
    [
        ("Data", 'data_param { source: "none" batch_size: 1 backend: LMDB }'),
        ("Data", 'data_param { source: "none" batch_size: 1 }'),
        ("ImageData", 'image_data_param { source: "none" batch_size: 1 }'),
        ("HDF5Data", 'hdf5_data_param { source: "none" batch_size: 1 }'),
    ],
)
def test_a_source_that_is_missing_is_named(kind, param, tmp_path):
    if kind == "HDF5Data":
        pytest.importorskip("h5py")
    with pytest.raises(ValueError, match=r"'d' \(\w+\): .*line 1: no such file: none .*shapes="):
        net(tmp_path, f'layer {{ name: "d" type: "{kind}" top: "data" top: "label" {param} }}')

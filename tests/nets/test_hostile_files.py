"""Files of strangers, of each kind that a net reads: none waits, none fills the memory, and each error names the file.

tests/support/hostile_files.py makes and reads them, in a process of its own.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from support import python_with_torch
from support.hostile_files import FOREIGN, IRREGULAR

pytest.importorskip("h5py")
pytest.importorskip("lmdb")
pytest.importorskip("cv2")


@pytest.fixture(scope="module")
def read(tmp_path_factory) -> list[tuple[str, str, str, str, str]]:
    """(kind, damage, path, the error's classes, its text) of each file."""
    folder = tmp_path_factory.mktemp("files")
    command = [python_with_torch.script(), str(ROOT / "tests" / "support" / "hostile_files.py"), str(folder)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=300)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, "\n".join([*lines[-1:], done.stderr[-3000:]])
    decode = json.JSONDecoder().raw_decode
    return [(*(first := decode(line))[0], *decode(line, first[1] + 1)[0]) for line in lines]


def test_each_error_names_the_file_and_is_one_of_ours(read):
    wrong = []
    for kind, damage, path, classes, text in read:
        ours = {"CaffeError", "OSError"} & set(classes.split())
        if classes and not (ours and path in text):
            wrong.append(f"{kind}, {damage}: {classes.partition(' ')[0]}: {text[:200]}")
    assert not wrong, "\n".join(wrong)
    assert len(read) >= 500 and len({kind for kind, *_ in read}) == 12


def test_no_file_of_another_kind_is_taken(read):
    taken = [(kind, damage) for kind, damage, _, classes, _ in read if not classes]
    assert not [t for t in taken if t[1] in FOREIGN or t[1] in IRREGULAR]
    # A changed byte may be one of a weight, or of a comment.
    assert 10 < len(taken) < len(read) / 4


def test_a_pointer_of_git_lfs_is_told_with_the_next_step(read):
    told = [text for _, damage, _, _, text in read if damage == "pointer"]
    assert len(told) == 12 and all("git lfs pull" in text for text in told), told


def test_a_large_text_is_no_prototxt(tmp_path):
    from cuffi import caffe_net

    with open(tmp_path / "disk.prototxt", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match=r"File too large for a text.*disk\.prototxt"):
        caffe_net(tmp_path / "disk.prototxt")


def test_a_mean_that_is_a_pipe_is_told_with_the_layer_and_its_line(tmp_path, monkeypatch):
    from cuffi.base import CaffeValueError
    from cuffi.nets.data.transform import Transform
    from cuffi.nets.net.messages import STOCK

    monkeypatch.chdir(tmp_path)
    os.mkfifo("mean.binaryproto")
    param = STOCK.message("TransformationParameter")
    param.mean_file = "mean.binaryproto"
    with pytest.raises(CaffeValueError, match=r"^layer 'd', line 3: mean_file: .*a pipe.*mean\.binaryproto"):
        Transform(param, True, lambda name, place: name, "layer 'd', line 3")


def test_a_leveldb_with_a_pipe_in_it(tmp_path):
    """LevelDB would open it, and wait."""
    plyvel = pytest.importorskip("plyvel")
    from cuffi.base import CaffeValueError
    from cuffi.nets.data.sources import LevelDB

    plyvel.DB(str(tmp_path / "db"), create_if_missing=True).close()
    (manifest,) = Path(tmp_path, "db").glob("MANIFEST-*")
    manifest.unlink()
    os.mkfifo(manifest)
    with pytest.raises(CaffeValueError, match=rf"db: .*{manifest.name} is no regular file"):
        LevelDB(str(tmp_path / "db"), None, "layer")

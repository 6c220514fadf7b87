"""cuffi/base/files.py: files are written as a whole."""

import os
import stat
import subprocess
import sys
import threading

import pytest
import torch
from conftest import ROOT

from cuffi import caffe_net
from cuffi.base import files
from cuffi.base.files import written_whole
from cuffi.nets.net.messages import STOCK

TEXT = """input: "x" input_shape { dim: 1 dim: 300 } layer { name: "a" type: "InnerProduct" bottom: "x" top: "y"
  inner_product_param { num_output: 300 } }"""


def write(path, data=b"new"):
    with written_whole(path) as file:
        file.write(data)


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "old"
    path.write_bytes(b"old")
    path.chmod(0o640)
    return path


def test_a_new_file_has_the_mode_of_the_process(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "a")
    finally:
        os.umask(before)
    assert (tmp_path / "a").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o777])
def test_a_file_keeps_its_mode(old, mode):
    old.chmod(mode)
    write(old)
    assert old.read_bytes() == b"new" and stat.S_IMODE(old.stat().st_mode) == mode


@pytest.mark.parametrize("exists", [True, False])
def test_a_symbolic_link_stays(tmp_path, old, exists):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    if exists:
        old.rename(target)
    (tmp_path / "link").symlink_to("folder/target")
    (tmp_path / "again").symlink_to("link")
    write(tmp_path / "again")
    assert (tmp_path / "again").is_symlink() and (tmp_path / "link").is_symlink()
    assert target.read_bytes() == b"new" and not target.is_symlink()
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["target"]


def test_a_pipe_and_a_device_are_written_to(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write(pipe)
    reader.join(10)
    assert got == [b"new"] and stat.S_ISFIFO(pipe.stat().st_mode)
    write("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_what_fails_leaves_the_old_file(tmp_path, old):
    with pytest.raises(KeyError), written_whole(old) as file:
        file.write(b"half")
        raise KeyError
    assert old.read_bytes() == b"old" and os.listdir(tmp_path) == ["old"]
    with pytest.raises(IsADirectoryError):
        write(tmp_path)
    with pytest.raises(FileNotFoundError, match="none/a'"):
        write(tmp_path / "none" / "a")


def test_a_process_that_is_killed_leaves_the_old_file(old):
    child = os.fork()
    if not child:
        with written_whole(old) as file:
            file.write(b"half")
            file.flush()
            os.kill(os.getpid(), 9)
    assert os.waitpid(child, 0)[1] == 9
    assert old.read_bytes() == b"old" and len(os.listdir(old.parent)) == 2
    with written_whole(
        old.parent / "other"
    ) as file:  # removes what the dead process left, and nothing of the living
        file.write(b"half")
        write(old)
        file.write(b" and half")
    assert sorted(os.listdir(old.parent)) == ["old", "other"]
    assert (old.parent / "other").read_bytes() == b"half and half"


def test_a_full_disk_names_the_file(tmp_path):
    """By the limit of a file's size, in a process of its own."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "from cuffi.base.files import written_whole\n"
        "with written_whole(sys.argv[1]) as file: file.write(bytes(5000))"
    )
    path = tmp_path / "a.caffemodel"
    done = subprocess.run([sys.executable, "-c", code, path], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == f"OSError: [Errno 27] File too large: '{path}'"
    assert os.listdir(tmp_path) == []


def test_threads_that_save_to_one_path(tmp_path):
    """Each file holds the weight and the bias of one net."""
    path = tmp_path / "a.caffemodel"
    nets, failed = [caffe_net(TEXT) for _ in range(4)], []
    for i, net in enumerate(nets):
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.fill_(i)

    def save(net):
        try:
            for _ in range(15):
                net.save_caffemodel(path)
                message = STOCK.message("NetParameter")
                message.ParseFromString(path.read_bytes())
                seen.append({value for blob in message.layer[0].blobs for value in blob.data})
        except Exception as error:
            failed.append(error)

    seen = []
    threads = [threading.Thread(target=save, args=(net,)) for net in nets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and [len(values) for values in seen] == [1] * 60
    assert os.listdir(tmp_path) == ["a.caffemodel"]


@pytest.fixture
def windows(monkeypatch):
    """As on Windows: no fcntl, and an open file can be neither removed nor replaced."""

    def is_open(path) -> bool:
        held = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
        return os.path.realpath(path) in held

    def refusing(function):
        def call(*paths, **named):
            if found := next((path for path in paths if is_open(path)), None):
                raise PermissionError(13, "The process cannot access the file", os.fspath(found))
            return function(*paths, **named)

        return call

    monkeypatch.setattr(files, "fcntl", None)
    for name in ("replace", "unlink"):
        monkeypatch.setattr(files.os, name, refusing(getattr(os, name)))


def test_without_fcntl(windows, tmp_path, old):
    """Lines end as they were given."""
    write(tmp_path / "new", b"a\r\nb\n")
    assert (tmp_path / "new").read_bytes() == b"a\r\nb\n"
    write(old)
    assert old.read_bytes() == b"new" and sorted(p.name for p in tmp_path.iterdir()) == ["new", "old"]


def test_without_fcntl_what_is_open_stays(windows, tmp_path, old):
    """The file of another writer is not swept, that of a dead one is. A file that a reader holds keeps its content."""
    dead = tmp_path / f"x.{'0' * 16}.partial"
    dead.write_bytes(b"half")
    with written_whole(tmp_path / "a") as first:
        first.write(b"first")
        write(tmp_path / "b")
        assert not dead.exists()
    assert (tmp_path / "a").read_bytes() == b"first"
    with open(old, "rb"), pytest.raises(PermissionError) as raised:
        write(old)
    assert raised.value.filename == str(old) and old.read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "old"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("deply.prototxt", " in {0}, which has deploy.prototxt: "),
        ("net.prototxt", " in {0}, which has deploy.prototxt: "),
        ("weights.caffemodel", " in {0}: "),
        ("gone/net.prototxt", ": there is no folder {0}/gone: "),
    ],
)
def test_a_missing_file_is_named_with_its_folder(name, words, tmp_path):
    (tmp_path / "deploy.prototxt").write_text(TEXT)
    with pytest.raises(FileNotFoundError) as error:
        caffe_net(tmp_path / name)
    assert str(error.value).startswith(f"[Errno 2] No such file or directory{words.format(tmp_path)}")
    assert error.value.filename == str(tmp_path / name)


def test_missing_weights_are_named_with_their_folder(tmp_path):
    caffe_net(TEXT).save_caffemodel(tmp_path / "a_iter_10.caffemodel")
    with pytest.raises(
        FileNotFoundError, match=f"in {tmp_path}, which has a_iter_10.caffemodel: .*b.caffemodel"
    ):
        caffe_net(TEXT, tmp_path / "b.caffemodel")


def test_weights_in_the_place_of_a_net(tmp_path):
    caffe_net(TEXT).save_caffemodel(tmp_path / "a.caffemodel")
    with pytest.raises(ValueError, match=r"a.caffemodel: not a prototxt: .*Weights are the second argument"):
        caffe_net(tmp_path / "a.caffemodel", TEXT)

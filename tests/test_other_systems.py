"""What cuffi-nets needs on Windows and macOS, as far as Linux can show it."""

import ast
import subprocess
import sys

import numpy as np
import pytest
import torch
from conftest import ROOT

from cuffi import caffe_net, dnn, folders
from tools.make.distributions import is_of_nets

FILES = [
    f for f in sorted((ROOT / "cuffi").rglob("*.py")) if is_of_nets(f.relative_to(ROOT / "cuffi").as_posix())
]
POSIX = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "termios"}
# Names of os that Windows does not have.
OF_OS = {"O_NOFOLLOW", "O_NONBLOCK", "fchmod", "fork", "geteuid", "getuid", "killpg", "mkfifo", "sched_getaffinity",
         "setsid", "symlink", "uname", "WNOHANG"}  # fmt: skip
NET = 'input: "x" input_shape { dim: 1 dim: 2 dim: 3 dim: 3 }\nlayer { name: "r" type: "ReLU" bottom: "x" top: "y" }\n'


def guarded(tree: ast.Module) -> set[ast.AST]:
    """The statements below a `try` that catches ImportError."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Try)]
    caught = [node for node in found if any("ImportError" in ast.unparse(h.type or h) for h in node.handlers)]
    return {inner for node in caught for part in node.body for inner in ast.walk(part)}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_no_file_needs_posix(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and node not in guarded(tree):
            names = {getattr(node, "module", None) or "", *(alias.name for alias in node.names)}
            found += [f"line {node.lineno}: {name}" for name in names if name in POSIX]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            found += [f"line {node.lineno}: os.{node.attr}"] * (node.attr in OF_OS)
    assert not found


def test_the_nets_are_imported_without_posix():
    """In a Python from which the names of POSIX are gone."""
    names = [".".join(f.relative_to(ROOT).with_suffix("").parts) for f in FILES if f.name != "__main__.py"]
    names = [n.removesuffix(".__init__") for n in names if "porting" not in n]
    script = f"""
import importlib, os, sys, torch, numpy, google.protobuf.text_format, rich.progress
for name in {sorted(POSIX - {"posix"})!r}:
    sys.modules[name] = None
for name in {sorted(OF_OS - {"uname", "sched_getaffinity"})!r}:
    if hasattr(os, name): delattr(os, name)
for name in {names!r}:
    importlib.import_module(name)
from cuffi import caffe_net
print(caffe_net({NET!r})(torch.ones(1, 2, 3, 3)).sum().item())
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "18.0\n", done.stderr


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_lines_of_any_kind(tmp_path, end):
    path = tmp_path / "net.prototxt"
    path.write_bytes(NET.replace("\n", end).encode())
    assert caffe_net(path)(torch.ones(1, 2, 3, 3)).sum() == 18


def test_a_file_of_notepad(tmp_path):
    """It begins with a mark of its encoding."""
    (tmp_path / "net.prototxt").write_text(NET, encoding="utf-8-sig")
    assert caffe_net(tmp_path / "net.prototxt")(torch.ones(1, 2, 3, 3)).sum() == 18


def test_folders_of_layers_may_have_a_drive(monkeypatch):
    monkeypatch.setattr(folders.os, "pathsep", ";")
    assert folders.split(r"C:\my layers;D:\more;") == [r"C:\my layers", r"D:\more"]


@pytest.mark.parametrize(
    "path", [r"C:\nets\deploy.prototxt", r"..\deploy.prototxt", r"\\server\nets\deploy.prototxt"]
)
def test_a_path_with_backslashes_is_a_path(path):
    """A file that is not there is named, and not parsed as a prototxt's text."""
    with pytest.raises((FileNotFoundError, ValueError), match=r"deploy\.prototxt") as raised:
        caffe_net(path)
    assert "line 1" not in str(raised.value) and "\n" not in str(raised.value)


def test_a_script_with_backslashes_finds_its_files(tmp_path, monkeypatch):
    """On Linux an OpenCV script of a Windows user still names them so."""
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "deploy.prototxt").write_text(NET)
    monkeypatch.chdir(tmp_path)
    net = dnn.readNetFromCaffe(r"nets\deploy.prototxt")
    net.setInput(np.ones((1, 2, 3, 3), np.float32))
    assert net.forward().sum() == 18

"""What cuffi-nets needs on Windows and macOS, as far as Linux can show it."""

import ast
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from conftest import ROOT
from support import python_with_torch
from support.syntax import tree_of

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
    tree = tree_of(file)
    found = []
    inside = guarded(tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and node not in inside:
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
    user = os.environ | {"USERNAME": "somebody"}  # as on Windows: torch 2.11 asks for it
    done = python_with_torch.run([sys.executable, "-c", script], env=user)
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


# Names of Windows' devices, whatever their suffix.
DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)")
SHIPPED = [path for path in sorted((ROOT / "cuffi").rglob("*")) if "__pycache__" not in path.parts]


def test_names_that_every_system_takes():
    names = [
        p.relative_to(ROOT).as_posix()
        for p in SHIPPED
        if is_of_nets(p.relative_to(ROOT / "cuffi").as_posix())
    ]
    assert len({name.lower() for name in names}) == len(names) > 100
    parts = {part for name in names for part in name.split("/")}
    wrong = re.compile(r"""[<>:"|?*\\\x00-\x1f]|[. ]$""")
    assert [part for part in parts if DEVICES.match(part) or wrong.search(part) or not part.isascii()] == []
    assert max(map(len, names)) < 100  # a path of Windows has 260
    assert [path for path in SHIPPED if path.is_symlink()] == []


def opened_by_the_system_s_encoding(tree: ast.Module) -> list[int]:
    """The lines where a text file is opened by the encoding of the system, such as cp1252."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        of = node.func
        name = of.attr if isinstance(of, ast.Attribute) else getattr(of, "id", "")
        named = {word.arg: word.value for word in node.keywords}
        if name == "open" and (isinstance(of, ast.Name) or ast.unparse(of) in ("io.open", "gzip.open")):
            mode = named.get("mode", node.args[1] if len(node.args) > 1 else ast.Constant("r"))
            text = not (isinstance(mode, ast.Constant) and "b" in str(mode.value))
            if text and "encoding" not in named and isinstance(mode, ast.Constant):
                found.append(node.lineno)
        first = {"read_text": 0, "write_text": 1}.get(name)
        if first is not None and "encoding" not in named and len(node.args) <= first:
            found.append(node.lineno)
    return found


def test_the_encoding_of_a_file_is_said():
    wrong = {
        f.relative_to(ROOT).as_posix(): opened_by_the_system_s_encoding(ast.parse(f.read_bytes()))
        for f in FILES
    }
    assert {name: lines for name, lines in wrong.items() if lines} == {}
    assert (
        opened_by_the_system_s_encoding(ast.parse("open(p); open(p, 'w'); a.read_text(); a.write_text(t)"))
        == [1] * 4
    )
    assert not opened_by_the_system_s_encoding(
        ast.parse("open(p, 'rb'); a.write_text(t, 'utf-8'); Image.open(p)")
    )


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "ascii"])
def test_a_console_of_any_encoding(tmp_path, encoding):
    """Names that it cannot show are escaped, in the command's own lines."""
    (tmp_path / "net.prototxt").write_text(NET.replace('"r"', '"\u5377\u79ef"'), encoding="utf-8")
    command = [sys.executable, "-m", "cuffi", "net", "net.prototxt"]
    named = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=named, capture_output=True)
    assert done.returncode == 0, done.stderr.decode(encoding, "replace")
    shown = "\u5377\u79ef" if encoding == "utf-16" else r"\u5377\u79ef"
    assert shown in done.stdout.decode(encoding)


def test_no_worker_is_forked():
    """Not even where a system could: what a worker gets is pickled everywhere (nets/data/test_transform.py)."""
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        assert "os.fork" not in text and 'get_context("fork")' not in text, file


# Modules that Python 3.12, 3.13 and 3.14 no longer have.
REMOVED = {"asynchat", "asyncore", "imp", "smtpd", "distutils", "cgi", "cgitb", "crypt", "imghdr", "lib2to3", "pipes",
           "sndhdr", "telnetlib", "uu", "xdrlib"}  # fmt: skip


def test_nothing_that_a_newer_python_lacks():
    """Warnings of the compiler are errors; nothing is imported, nor used of ast, that 3.12 to 3.14 removed."""
    gone_of_ast = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis"}
    for file in FILES:
        tree = tree_of(file)
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)) and node not in guarded(tree):
                names = {getattr(node, "module", None) or "", *(alias.name for alias in node.names)}
                assert not {name.split(".")[0] for name in names} & REMOVED, f"{file}, line {node.lineno}"
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "ast":
                assert node.attr not in gone_of_ast, f"{file}, line {node.lineno}"
    code = "import sys, pathlib\nfor p in sys.argv[1:]: compile(pathlib.Path(p).read_bytes(), p, 'exec')"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, FILES)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

"""What type checkers know of the public names: ty, mypy and pyright, each if it is there."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import cuffi

RIGHT = """
import torch
from torch import Tensor

from cuffi import CaffeError, CaffeNet, Layer, caffe, caffe_net, dnn, load_inline, operator, train
from cuffi.judge import judge

layer = Layer(__name__)


@operator(layer)
def twice(bottom: Tensor, factor: float = 2.0) -> Tensor:
    return bottom * factor


@twice.backward
def _(ctx, top_diff):
    return 2 * top_diff, None


def run(path: str) -> Tensor:
    net: CaffeNet = caffe_net(path, ["a.caffemodel", "b.caffemodel"], phase="TEST", shapes={"data": (1, 3, 8, 8)})
    net.conv1.weight.zero_()
    m = load_inline("relu", "...", backends="host")
    try:
        m.relu_kernel(3, torch.zeros(3))
    except CaffeError as error:
        print(error)
    return twice(net(data=torch.zeros(1, 3, 8, 8)), factor=3.0)


print(judge(["a.cu"], blocks=3)["verdict"], caffe.TEST, dnn.readNetFromCaffe, train.main)
"""
# Another: modules that are commands, and a layer, which lies in no module that a checker can see.
RIGHT_TOO = """
import numpy as np
import torch

import cuffi
import cuffi.train
from cuffi import CaffeBuildError, CaffeTypeError, CaffeValueError, caffe_layer, load
from cuffi.sigmoid import sigmoid


def build(folder: str) -> torch.Tensor:
    try:
        layer = load(folder, backends=["host"])
    except (CaffeBuildError, CaffeValueError, CaffeTypeError) as error:
        raise SystemExit(str(error)) from error
    return sigmoid(layer.forward(torch.from_numpy(np.zeros(3, "f"))))


net = cuffi.caffe.Net("a.prototxt", cuffi.caffe.TEST)
print(cuffi.__version__, caffe_layer, net.blobs["data"].data.shape)
"""
# Each is a mistake on a line of its own, with what it imports.
WRONG = """
import torch
import cuffi
from cuffi import caffe_net, load_inline, operator, Layer
from cuffi import caffe_nett  # 1
caffe_net("a.prototxt", trian=True)  # 2
load_inline("relu", "...", arch=90)  # 3
caffe_net()  # 4
twice = operator(Layer("x"))(lambda x: x)
def of(bottom: torch.Tensor) -> torch.Tensor: return bottom
own = operator(Layer("x"))(of)
own("text")  # 5
cuffi.load_inlin("relu")  # 6
"""


def names_for_checkers() -> dict[str, str]:
    """{name: module} of the imports that __init__.py has for type checkers alone."""
    (block,) = (
        node for node in ast.parse((ROOT / "cuffi" / "__init__.py").read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )  # fmt: skip
    found = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        found |= {alias.asname or alias.name: node.module or "" for alias in node.names}
    return found


def test_the_checkers_names_are_the_public_ones():
    names = names_for_checkers()
    modules = {name for name, module in names.items() if not module}
    assert set(names) - modules == set(cuffi._PUBLIC) and modules == {"caffe", "dnn", "train"}
    for name in set(names) - modules:
        assert names[name].startswith(cuffi._PUBLIC[name]), name
    assert not cuffi.TYPE_CHECKING


def checker(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path=os.path.dirname(sys.executable))
    if found is None:
        pytest.skip(f"no {name}")
    return found


def checked(name: str, folder: Path, place: Path) -> dict[str, set[int]]:
    """The lines with errors of each file in the folder, by a checker that finds the package in `place`."""
    program = checker(name)
    if name == "ty":
        command = [
            program,
            "check",
            "--python",
            sys.prefix,
            "--extra-search-path",
            str(place),
            "--output-format",
            "concise",
        ]
    elif name == "mypy":
        command = [
            program,
            "--python-executable",
            sys.executable,
            "--follow-imports=silent",
            "--show-error-codes",
        ]
        command += ["--cache-dir", str(folder / "cache")]
    else:
        (folder / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{place}"]}}')
        command = [program, "--pythonpath", sys.executable, "-p", str(folder)]
    files = [] if name == "pyright" else sorted(str(f) for f in folder.glob("*.py"))
    environment = os.environ | {"MYPYPATH": str(place)}
    done = subprocess.run([*command, *files], capture_output=True, text=True, cwd=folder, env=environment)
    lines: dict[str, set[int]] = {f.name: set() for f in folder.glob("*.py")}
    for file, line in re.findall(r"(\w+\.py):(\d+).*?\berror\b", done.stdout):
        lines[file].add(int(line))
    return lines


def as_installed(place: Path) -> Path:
    """The package as a wheel has it: with the layers, and with the stubs that setup.py writes for them."""
    (place / "cuffi").mkdir(parents=True)
    for file in (ROOT / "cuffi").iterdir():
        (place / "cuffi" / file.name).symlink_to(file)
    (place / "cuffi" / "layers").symlink_to(ROOT / "layers")
    (stub,) = re.findall(r'\.pyi"\)\.write_text\(f"(.*?)\\n"\)', (ROOT / "setup.py").read_text())
    (place / "cuffi" / "sigmoid.pyi").write_text(stub.format(package="cuffi.layers.sigmoid") + "\n")
    return place


@pytest.mark.parametrize("name", ["ty", "mypy", "pyright"])
def test_right_files_pass_and_wrong_lines_are_told(tmp_path, name):
    files = tmp_path / "files"
    files.mkdir()
    for file, text in (("right", RIGHT), ("too", RIGHT_TOO), ("wrong", WRONG)):
        (files / f"{file}.py").write_text(text)
    found = checked(name, files, as_installed(tmp_path / "site"))
    wrong = {n for n, line in enumerate(WRONG.splitlines(), 1) if re.search(r"# \d$", line)}
    assert len(wrong) == 6 and found == {"right.py": set(), "too.py": set(), "wrong.py": wrong}

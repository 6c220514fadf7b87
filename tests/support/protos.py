"""Folders of .proto files, and the results of reading them."""

import subprocess
import sys
from pathlib import Path

from cuffi.caffe_files.parameters import Parameters

ROOT = Path(__file__).resolve().parents[2]
SNIPPET = """message NormalizeParameter { optional bool across_spatial = 1 [default = true]; }
extend LayerParameter { optional NormalizeParameter norm_param = 206; }
"""


def generate(folder: Path, include: Path | None = None) -> subprocess.CompletedProcess:
    include = include or folder / "include"
    command = [
        sys.executable,
        "-m",
        "cuffi.caffe_layers.make.proto",
        "--layer-dir",
        folder,
        "--include-dir",
        include,
    ]
    command += ["--descriptor", folder / "_caffe.desc"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def layer_with(folder: Path, **protos: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in protos.items():
        (folder / f"{name}.proto").write_text(text)
    return folder


def parameters(folder: Path) -> Parameters:
    done = generate(folder)
    assert done.returncode == 0, done.stderr
    return Parameters(folder)

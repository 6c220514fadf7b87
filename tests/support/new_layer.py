"""Runs make new's tool, and makes launchers of a text."""

import subprocess
import sys
from pathlib import Path

from tools.new_layer.from_kernels import make_launchers
from tools.new_layer.kernel_file import kernels_of

ROOT = Path(__file__).resolve().parents[2]


def new(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "tools.new_layer", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


def derive(text, layer="foo"):
    """The launchers of a text, by kernel, and the reasons for kernels without one."""
    launchers, left_out = make_launchers(layer, kernels_of(text, "/x/foo_layer.cu"))
    return {x.kernel.name: x for x in launchers}, dict(left_out)


def kernel(parameters, body="", template="template <typename Dtype>", launch="", host=""):
    return (
        f"{template}\n__global__ void Run({parameters}) {{ {body} }}\n"
        f"template <typename Dtype> void FooLayer<Dtype>::Forward_gpu() {{ {host} {launch} }}\n"
    )


LOOP = "CUDA_KERNEL_LOOP(i, n) { x[i] = 0; }"

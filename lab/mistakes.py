"""Make 94 mistakes that a newcomer makes, and grade what is said.

    python -m lab.mistakes                                     # 20 minutes; shows each message
    python -m lab.mistakes --only 33 40 --old python3.8 --older python3.6 --bare python3.10

3: the message names what is wrong as the user wrote it, or its file and line, and what is expected or the next step.
2: it names it. 1: an error, but not the words. 0: no error, or silence. The words are the two patterns of each mistake.
--old, --older and --bare are Pythons of 3.8, 3.6 and one without torch, and --caffe is a Caffe tree; without them the
mistakes that need them are left out.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from lab.trials import ended

ROOT = Path(__file__).resolve().parents[1]
BEFORE = '''
import numpy as np, torch, cuffi
from pathlib import Path
from cuffi import caffe_net, load_inline
from cuffi.sigmoid import sigmoid
x, i3 = torch.ones(3), torch.ones(3, dtype=torch.int32)
KERNEL = """extern "C" __global__ void %s(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  %s
}"""
FILE = """#define CUDA_KERNEL_LOOP(i, n) \\
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
__global__ void relu_kernel(const int n, const float* in, float* out) {
  CUDA_KERNEL_LOOP(i, n) out[i] = in[i] > 0 ? in[i] : 0;
}"""
def kernel(name, body, before=""):
    return load_inline(name, before + KERNEL % (name, body), backends="host")
def launch(name, body, before=""):
    getattr(kernel(name, body, before), name)(torch.ones(4), torch.zeros(4), 4, 1, 1, 1, 64, 1, 1)
NET = """name: "n"
input: "data"
input_shape { dim: 1 dim: 3 dim: 8 dim: 8 }
layer { name: "c" type: "Convolution" bottom: "data" top: "c" convolution_param { num_output: 2 kernel_size: 3 } }
layer { name: "r" type: "ReLU" bottom: "c" top: "r" }
"""
(HERE / "n.prototxt").write_text(NET)
'''
RELU = 'relu = load_inline("m_relu", FILE, backends="host").relu_kernel\n'
OUT = RELU + "a = torch.ones(6)\n"
SAVED = 'net = caffe_net(NET); net.save_caffemodel("n.caffemodel")\n'
NORMALIZE = "from cuffi.normalize import Normalize; "
PSROI = "from cuffi.psroi_pooling import PSROIPooling; "
SIZES = "psroi_pooling_param=dict(spatial_scale=1, output_dim=1, group_size=1)"
MAKE = "make --no-print-directory"
PORT = MAKE + " port LAYERS_DIR=$HERE"
TRAIN = MAKE + " train SOLVER=$HERE/s.prototxt"


class Mistake(NamedTuple):
    title: str
    made: str  # Python, or a command of the shell that begins with "$ "
    named: str  # a pattern: what is wrong
    then: str  # a pattern: what is expected, or the next step


MISTAKES = {
    1: Mistake("int to sigmoid", "sigmoid(i3)", "bottom", "float32"),
    2: Mistake("numpy array for a tensor", "sigmoid(np.ones(3, 'f'))", "bottom", "expected a tensor"),
    3: Mistake("list for a tensor", "sigmoid([1.0])", "bottom", "expected a tensor"),
    4: Mistake("cuda tensor without CUDA", "sigmoid(x.cuda())", "CUDA", "cuffi|install"),
    5: Mistake("meta tensor to a launcher", RELU + "relu(3, x, x.to('meta'))", "out", "cpu"),
    6: Mistake("missing argument", "sigmoid()", "bottom", "missing|takes"),
    7: Mistake("argument too many", "sigmoid(x, x)", "takes 1 argument", "bottom"),
    8: Mistake("wrong keyword", "sigmoid(x=x)", "no parameter x", "takes bottom"),
    9: Mistake(
        "shapes differ",
        "from cuffi.elementwise_mult import elementwise_mult as f; f(torch.ones(2, 3), torch.ones(3, 2))",
        r"b: expected the shape of a",
        r"\[3, 2\]",
    ),
    10: Mistake(
        "dtypes differ",
        "from cuffi.elementwise_mult import elementwise_mult as f; f(x, x.double())",
        "b: expected",
        "float32",
    ),
    11: Mistake("sparse tensor", "sigmoid(torch.eye(3).to_sparse())", "bottom", "dense"),
    12: Mistake("output not contiguous", OUT + "relu(3, a[:3], a[::2])", "out", "contiguous"),
    13: Mistake("output too small", OUT + "relu(6, a, x)", "out", "6"),
    14: Mistake("too few arguments to a launcher", OUT + "relu(6, a)", "takes 3 arguments", "out"),
    15: Mistake("float for an int", OUT + "relu(6.5, a, a)", "n", "an int"),
    16: Mistake("int tensor to a float kernel", OUT + "relu(3, i3, x)", "float32", "in:"),
    17: Mistake(
        "output requires grad", OUT + "relu(6, a, a.clone().requires_grad_())", "out", "no_grad|detach"
    ),
    18: Mistake(
        "wrong launcher",
        'load_inline("m_relu", FILE, backends="host").relu_kernl',
        "relu_kernl",
        "relu_kernel",
    ),
    19: Mistake("layer misspelt", "from cuffi.sigmiod import sigmoid", "sigmiod", "cuffi.sigmoid"),
    20: Mistake(
        "function misspelt", "from cuffi.sigmoid import sigmoyd", "sigmoyd", "Did you mean|There are"
    ),
    21: Mistake(
        "no semicolon", 'kernel("m21", "if (i < n) out[i] = in[i]")', r"line 3|m21.*:[34]", "expected"
    ),
    22: Mistake(
        "brace not closed",
        'kernel("m22", "if (i < n) { out[i] = in[i];")',
        "line 1|m22.*:1",
        "has no partner",
    ),
    23: Mistake(
        "name not declared", 'kernel("m23", "if (i < n) out[i] = inn[i];")', "m23.*:3", "inn.* (not|did)"
    ),
    24: Mistake(
        "header not found",
        'kernel("m24", "", \'#include "nothere.h"\\n\')',
        "nothere.h",
        "m24.*:1|include_dirs",
    ),
    25: Mistake(
        "function not defined",
        'kernel("m25", "if (i < n) out[i] = helper(1);", "__device__ float helper(float);\\n")',
        "helper",
        "defined|sources=",
    ),
    26: Mistake(
        "no return",
        'kernel("m26", "if (i < n) out[i] = f(in[i]);", "__device__ float f(float v) { v += 1; }\\n")',
        "m26.*:1",
        "return",
    ),
    27: Mistake(
        "no kernel at all",
        'load_inline("m27", "int f(int a) { return a; }", backends="host")',
        "m27",
        "expected|no kernel|__global__|launcher|tensor",
    ),
    28: Mistake(
        "torch's functions without torch/extension.h",
        'load_inline("m28", "at::Tensor f(at::Tensor a) { return a; }", backends="host")',
        "m28",
        "functions=|torch/extension.h",
    ),
    29: Mistake(
        "cpp_sources alone",
        'load_inline("m29", cpp_sources="int f();", cuda_sources=FILE)',
        "m29",
        "functions=",
    ),
    30: Mistake(
        "name with a dash", 'load_inline("a-b", FILE, backends="host")', "a-b", "letters|identifier|name"
    ),
    31: Mistake(
        "clusters",
        'kernel("m31", "auto c = cooperative_groups::this_cluster(); c.sync();", "#include <cooperative_groups.h>\\n")',
        "m31.*:4|this_cluster",
        "GPU|host",
    ),
    32: Mistake("a wild address", 'launch("m32", "out[i + 100000000000LL] = in[i];")', "m32", "out|memory"),
    33: Mistake(
        "one element too far",
        'launch("m33", "if (i < n) out[i + 1] = in[i];")',
        "out: m33.* wrote behind",
        "make sanitize",
    ),
    34: Mistake(
        "integer division by zero", 'launch("m34", "if (i < n) out[i] = 3 / (n - 4);")', "m34", "by zero"
    ),
    35: Mistake(
        "assert",
        'launch("m35", "assert(i > 2);", "#include <assert.h>\\n")',
        "m35.*:4",
        "assert.*i > 2|i > 2.*assert",
    ),
    36: Mistake(
        "a block of 2,048 threads",
        'kernel("m36", "if (i < n) out[i] = 1;").m36(x, x.clone(), 3, 1, 1, 1, 2048, 1, 1)',
        "2048|2,048",
        "1024|1,024",
    ),
    37: Mistake(
        "barrier for some threads",
        'launch("m37", "if (i < 3) __syncthreads(); else __syncthreads();")',
        "m37",
        "__syncthreads",
    ),
    38: Mistake(
        "endless kernel, Ctrl-C",
        'k = kernel("m38", "while (true) { out[0] = in[0]; __threadfence(); }"); import os, signal, threading; '
        "signal.signal(signal.SIGINT, signal.default_int_handler); "
        "threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start(); k.m38(x, x.clone(), 3, 1, 1, 1, 64, 1, 1)",
        "KeyboardInterrupt",
        "",
    ),
    39: Mistake(
        "500,000 bytes of shared memory",
        'load_inline("m39", "__global__ void k(float* o, int n) { extern __shared__ float s[]; o[0] = s[0]; }", '
        'backends="host").k(o=x, n=3, grid_x=1, grid_y=1, grid_z=1, block_x=1, block_y=1, block_z=1, '
        "shared_bytes=500000)",
        "500000|500,000",
        "limit|at most",
    ),
    40: Mistake(
        "field misspelt",
        "caffe_net(NET.replace('num_output', 'num_outputs'))",
        "line 4.*num_outputs",
        "num_output'|did you mean",
    ),
    41: Mistake("type misspelt", "caffe_net(NET.replace('ReLU', 'RelU'))", "line 5.*RelU", "ReLU"),
    42: Mistake(
        "bottom misspelt",
        "caffe_net(NET.replace('bottom: \"data', 'bottom: \"dat'))",
        "line 4.*'dat'",
        "did you mean 'data'",
    ),
    43: Mistake(
        "brace missing", "caffe_net(NET.replace('8 }', '8 '))", "line [34]", "expected|closed|}|begins"
    ),
    44: Mistake("no prototxt there", "caffe_net('nothere.prototxt')", "nothere.prototxt", "No such file"),
    45: Mistake(
        "no weights there", "caffe_net('n.prototxt', 'nn.caffemodel')", "nn.caffemodel", "No such file"
    ),
    46: Mistake(
        "weights of another net",
        SAVED + "caffe_net(NET.replace('num_output: 2', 'num_output: 5'), 'n.caffemodel')",
        "'c'",
        "shape|5",
    ),
    47: Mistake(
        "weights are a pointer of git-lfs",
        "open('w.caffemodel', 'w').write('version https://git-lfs.github.com/spec/v1\\noid sha256:0\\nsize 9\\n'); "
        "caffe_net('n.prototxt', 'w.caffemodel')",
        "w.caffemodel",
        "git.lfs",
    ),
    48: Mistake(
        "swapped files", SAVED + "caffe_net('n.caffemodel', 'n.prototxt')", "n.caffemodel", "binary|prototxt"
    ),
    49: Mistake("wrong name of an input", "caffe_net(NET)(dat=torch.ones(1, 3, 8, 8))", "'dat'", "data"),
    50: Mistake("wrong channels", "caffe_net(NET)(torch.ones(1, 4, 8, 8))", "line 4.*'c'", r"\[1, 3, 8, 8\]"),
    51: Mistake("numpy to a net", "caffe_net(NET)(np.ones((1, 3, 8, 8), 'f'))", "'data'", "from_numpy"),
    52: Mistake(
        "uint8 to a net",
        "caffe_net(NET)(torch.ones(1, 3, 8, 8, dtype=torch.uint8))",
        "'data'|'c'",
        r"\.float\(\)",
    ),
    53: Mistake("wrong end", "caffe_net(NET)(torch.ones(1, 3, 8, 8), blobs=['q'])", "'q'", "There are|r"),
    54: Mistake(
        "a Caffe layer's field misspelt",
        NORMALIZE + "Normalize(norm_param=dict(acros_spatial=True))",
        "acros_spatial",
        "across_spatial",
    ),
    55: Mistake(
        "a Caffe layer's field of another type",
        NORMALIZE + "Normalize(norm_param=dict(across_spatial='x'))",
        "across_spatial",
        "bool|expected|true",
    ),
    56: Mistake(
        "half to a Caffe layer",
        NORMALIZE + "Normalize()(torch.ones(1, 2, 3, 3).half())",
        "Normalize|normalize",
        "float32",
    ),
    57: Mistake(
        "2-D to a Caffe layer",
        PSROI + f"PSROIPooling({SIZES})(torch.ones(2, 3), torch.ones(1, 5))",
        "psroi_pooling|PSROIPooling",
        r"\[2, 3\]|4",
    ),
    58: Mistake(
        "a Caffe layer without fields",
        PSROI + "PSROIPooling()(torch.ones(1, 1, 3, 3), torch.ones(1, 5))",
        "PSROIPooling|psroi_pooling",
        "spatial_scale|output_dim|group_size",
    ),
    59: Mistake("port without arguments", f"$ {MAKE} port", "CAFFE", "TYPE=Normalize"),
    60: Mistake("port of no tree", f"$ {PORT} CAFFE=/nothere TYPE=X", "/nothere", "include/ and src/"),
    61: Mistake(
        "port of a type that is not there", f"$ {PORT} CAFFE=$CAFFE TYPE=Nosuch", "Nosuch", "It has|Near"
    ),
    62: Mistake("port of a type in small letters", f"$ {PORT} CAFFE=$CAFFE TYPE=relu", "relu", "ReLU"),
    63: Mistake("new without a name", f"$ {MAKE} new", "which layer", "LAYER=foo"),
    64: Mistake(
        "new of a layer that is there", f"$ {MAKE} new LAYER=sigmoid", "sigmoid", "exists|there is|already"
    ),
    65: Mistake("new with a bad name", f"$ {MAKE} new LAYER=a-b", "a-b", "letters|name"),
    66: Mistake("layer misspelt for make", f"$ {MAKE} LAYERS=sigmiod", "sigmiod", "There are.*sigmoid"),
    67: Mistake(
        "verify of a native layer",
        f"$ {MAKE} verify LAYER=sigmoid",
        "sigmoid",
        "Caffe layer|native|make test",
    ),
    68: Mistake("verify of no layer", f"$ {MAKE} verify LAYER=nosuch", "nosuch", "There are"),
    69: Mistake("ffi without EXT", f"$ {MAKE} ffi", "EXT", "/path/to/extension"),
    70: Mistake("ffi of no folder", f"$ {MAKE} ffi EXT=/nothere", "/nothere", "there is no|expected"),
    71: Mistake("net without PROTOTXT", f"$ {MAKE} net", "PROTOTXT", "deploy.prototxt"),
    72: Mistake(
        "net of no file", f"$ {MAKE} net PROTOTXT=nothere.prototxt", "nothere.prototxt", "there is no"
    ),
    73: Mistake("train without SOLVER", f"$ {MAKE} train", "SOLVER", "solver.prototxt"),
    74: Mistake(
        "solver whose net is missing",
        f'$ echo \'net: "no.prototxt" base_lr: 1 lr_policy: "fixed" max_iter: 1\' > $HERE/s.prototxt; {TRAIN}',
        "no.prototxt",
        "s.prototxt|no such|there is no",
    ),
    75: Mistake(
        "solver's field misspelt",
        f"$ echo 'net: \"n\" base_rl: 1' > $HERE/s.prototxt; {TRAIN}",
        "base_rl",
        "base_lr",
    ),
    76: Mistake("make install", f"$ {MAKE} install", "'install'", "pip install"),
    77: Mistake("setting misspelt", f"$ {MAKE} NVVC= BUILD=$HERE/b", "NVVC", "NVCC"),
    78: Mistake("GPU too old", f"$ {MAKE} ARCH=sm_70 BUILD=$HERE/b", "sm_70", "--list-gpu-code"),
    79: Mistake("no such GPU", f"$ {MAKE} ARCH=foo BUILD=$HERE/b", "foo", "--list-gpu-code"),
    80: Mistake(
        "no such C++ compiler", f"$ {MAKE} CXX=nosuchcxx BUILD=$HERE/b", "nosuchcxx", "C\\+\\+ compiler"
    ),
    81: Mistake(
        "no such nvcc", f"$ {MAKE} NVCC=/nothere/nvcc BUILD=$HERE/b", "/nothere/nvcc", "NVCC=|no such program"
    ),
    82: Mistake("make with Python 3.8", f"$ {MAKE} PYTHON=$OLD", "3.8", "3.10 or newer"),
    83: Mistake("make with Python 3.6", f"$ {MAKE} PYTHON=$OLDER", "3.6", "3.10 or newer"),
    84: Mistake(
        "no such folder of layers", f"$ {MAKE} LAYERS_DIR=/nothere/x", "/nothere/x", "there is no folder"
    ),
    85: Mistake("no such backend", f"$ {MAKE} BACKENDS=gpu", "gpu", "host and cuda"),
    86: Mistake("no such sanitizer", f"$ {MAKE} SANITIZE=thread", "thread", "races"),
    87: Mistake("import with Python 3.8", "$ $OLD -c 'import cuffi'", "3.8", "3.10 or newer"),
    88: Mistake(
        "import without torch", "$ $BARE -c 'from cuffi.sigmoid import sigmoid'", "torch", "install|needs"
    ),
    89: Mistake("cuffi.caffe without a file", "$ $PYTHON -m cuffi.caffe", "script.py", "Runs"),
    90: Mistake(
        "cuffi.caffe of no file", "$ $PYTHON -m cuffi.caffe nothere.py", "nothere.py", "there is no file"
    ),
    91: Mistake(
        "cuffi.dnn of no file", "$ $PYTHON -m cuffi.dnn nothere.py", "nothere.py", "there is no file"
    ),
    92: Mistake("onnx without PROTOTXT", f"$ {MAKE} onnx", "PROTOTXT", "deploy.prototxt"),
    93: Mistake("caffetest without TEST", f"$ {MAKE} caffetest CAFFE=/nothere", "TEST", "test_x_layer.cpp"),
    94: Mistake("target misspelt", f"$ {MAKE} verfy", "verfy", "verify"),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=int, nargs="*", default=list(MISTAKES))
    parser.add_argument("--caffe", type=Path, help="a Caffe tree, for the two mistakes that need one")
    for name in ("--old", "--older", "--bare"):
        parser.add_argument(name)
    asked = parser.parse_args()
    given = {
        "CAFFE": asked.caffe,
        "OLD": asked.old,
        "OLDER": asked.older,
        "BARE": asked.bare,
        "PYTHON": sys.executable,
    }
    grades = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {name: str(value) for name, value in given.items() if value}
        environment |= {"HERE": folder, "PYTHONPATH": str(ROOT), "CUFFI_CACHE": f"{folder}/cache"}
        os.environ.update(environment)
        names: dict = {"HERE": Path(folder)}
        exec(BEFORE, names)
        for number in asked.only:
            mistake = MISTAKES[number]
            if missing := [name for name, value in given.items() if not value and f"${name}" in mistake.made]:
                print(f"- {number:02} {mistake.title}: left out, no --{missing[0].lower()}", flush=True)
                continue
            how, said = made(mistake, folder, environment, names)
            grades[number] = grade = graded(mistake, how, said)
            shown = " / ".join(line.strip() for line in message(said).splitlines() if line.strip())[-400:]
            print(f"{grade} {number:02} {mistake.title}: {shown or 'silence'}", flush=True)
    if grades:
        counts = collections.Counter(grades.values())
        print(
            f"{len(grades)} mistakes: mean {sum(grades.values()) / len(grades):.2f}, "
            + ", ".join(f"{counts[grade]} of grade {grade}" for grade in (3, 2, 1, 0))
        )
    return 0


def made(mistake: Mistake, folder: str, environment: dict, names: dict) -> tuple[str, str]:
    """(how it ended, what was said) of a mistake: Python in a fork of this process, and commands in the checkout."""
    said = Path(folder) / "said"
    if mistake.made.startswith("$ "):
        with open(said, "w") as file:
            command = ["timeout", "300", "bash", "-c", mistake.made[2:]]
            done = subprocess.run(
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )
        return f"status {done.returncode}" if done.returncode else "", said.read_text()
    return ended(lambda: exec(mistake.made, names), 120, said, Path(folder)), said.read_text()


def graded(mistake: Mistake, how: str, said: str) -> int:
    if not how or not said.strip():
        return 0
    last = said if mistake.made.startswith("$ ") else message(said)
    named, then = (re.search(pattern, last, re.DOTALL) for pattern in (mistake.named, mistake.then))
    return 3 if named and then else 2 if named else 1


def message(said: str) -> str:
    """What a traceback ends with."""
    lines = said.splitlines()
    frames = [i for i, line in enumerate(lines) if line.startswith("  ") and "File " in line]
    after = lines[frames[-1] + 1 :] if frames else lines
    return "\n".join(line for line in after if set(line.strip()) - set("^~")) if frames else said


if __name__ == "__main__":
    sys.exit(main())

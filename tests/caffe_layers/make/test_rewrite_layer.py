"""The rewriters of a Caffe layer's files: pairs of input and output, and what is refused.

rewrite_layer/caffe is a Caffe layer's folder, rewritten for both compilers: x.host.expected, x.nvcc.expected.
After a deliberate change: `python tests/caffe_layers/make/test_rewrite_layer.py --update` writes the goldens anew.
"""

import os
import subprocess
import sys

import pytest
from support.rewriting import update
from support.workshop import FIXTURES, ROOT

from cuffi.caffe_layers.make.layer_folder import LayerFolder
from cuffi.caffe_layers.make.rewrite_layer import LayerHostRewriter, LayerNvccRewriter
from tools.cuda.for_nvcc import NvccRewriter
from tools.cuda.rewrite import rewrite
from tools.files import read

CASES = FIXTURES / "rewrite_layer"


@pytest.fixture
def in_cases(monkeypatch):
    monkeypatch.chdir(CASES)


def rewritten(path, rewriter):
    """The texts and the problems of a file of a Caffe layer's folder."""
    folder = os.path.dirname(path)
    return rewrite(path, rewriter, "tool", "", folder, LayerFolder(folder).find)[:2]


def outputs():
    """Golden file -> the text that it should hold. Runs in CASES: the path in #line is the one given."""
    found = {}
    for compiler, rewriter in (("host", LayerHostRewriter), ("nvcc", LayerNvccRewriter)):
        texts, problems = rewritten("caffe/blend_layer.cu", rewriter)
        assert not problems, "\n".join(map(str, problems))
        for name, text in texts.items():
            found[CASES / "caffe" / f"{name or 'blend_layer.cu'}.{compiler}.expected"] = text
    return found


def test_golden(in_cases):
    """A header that is included by its path in a fork is the folder's, and its launches get the stream too."""
    found = outputs()
    assert {path.name.split(".", 1)[0] for path in found} == {"blend_layer", "blend_kernels"}
    for path, text in found.items():
        assert text == read(path), f"{path.name} differs; `python {__file__} --update` shows how"


def test_a_forks_own_atomic_add_does_not_meet_cudas(in_cases):
    for path, text in outputs().items():
        assert ("double forks_own_atomicAdd(double* address" in text) == ("kernels" in path.name)


def test_each_launch_of_a_caffe_layer_gets_the_stream(in_cases):
    text = outputs()[CASES / "caffe" / "blend_layer.cu.nvcc.expected"]
    assert text.count("::caffe::current_stream()") == 3  # one in a macro; and one launch that names its own
    assert "CAFFE_CUDA_NUM_THREADS, 0, ::caffe::current_stream()>>>" in text
    assert "64 * sizeof(Dtype) , ::caffe::current_stream()>> >" in text and "<<<1, 64, 0, mine_>>>" in text


@pytest.mark.parametrize("line", ["#ifdef __CUDACC__", "#if defined(__NVCC__)", "#ifndef __CUDACC__\n#else"])
def test_launch_that_only_nvcc_sees(tmp_path, line):
    """It gets the stream, and so does one in a header that only nvcc's branch includes."""
    launch = "void go{}() {{ k<<<1, 2>>>(); }}\n"
    guarded = f'{line}\n#include "deep.cuh"\n{launch.format("")}#endif\n'
    (tmp_path / "x.cu").write_text(f"__global__ void k() {{}}\n{guarded}")
    (tmp_path / "deep.cuh").write_text(launch.format("_deep"))
    texts, problems = rewritten(str(tmp_path / "x.cu"), LayerNvccRewriter)
    assert not problems and texts.keys() == {"", "deep.cuh"}
    assert all("k<<<1, 2, 0, ::caffe::current_stream()>>>" in text for text in texts.values())
    assert rewritten(str(tmp_path / "x.cu"), LayerHostRewriter)[0].keys() == texts.keys()


@pytest.mark.parametrize("macro", ["#define GO(k, n) k<<<1, 2>>>(#n)", "#define GO k<<<1, 2(x)"])
def test_launch_of_a_caffe_layer_that_cannot_get_the_stream(tmp_path, macro):
    (tmp_path / "x.cu").write_text(f"\n{macro}\n")
    path = str(tmp_path / "x.cu")
    _, problems = rewritten(path, LayerNvccRewriter)
    assert [problem.line for problem in problems] == [2] and "launch" in problems[0].text
    assert not rewrite(path, NvccRewriter, "tool", "")[1]  # a native layer's is its author's affair


def test_caffe_file_without_device_code_says_so(tmp_path):
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / "x.cu").write_text('#include "caffe/layers/x.hpp"\nint x;\n')
    (folder / "x.hpp").write_text("int y;\n")

    def text():
        return rewritten(str(folder / "x.cu"), LayerNvccRewriter)[0][""]

    assert "// No device code\n#line 1\n#include" in text()
    (folder / "x.hpp").write_text("__global__ void k();\n")
    assert "// No device code" not in text()


@pytest.mark.parametrize(
    ("compiler", "first", "launch"),
    [
        ("to_host", "#include <cuda_runtime.h>\n", "configure(1, 2)"),
        (
            "for_nvcc",
            '#include "caffe/util/device_alternate.hpp"\n',
            "<<<1, 2, 0, ::caffe::current_stream()>>>",
        ),
    ],
)
def test_the_command(tmp_path, compiler, first, launch):
    """As make runs it. A header of the folder that is included by a fork's path is among what the output is made of."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/x.cu").write_text('#include "caffe/a.cuh"\nvoid f() { k<<<1, 2>>>(); }\n')
    (tmp_path / "a.cuh").write_text("__global__ void k() {}\n")
    out = tmp_path / "made/deep/x.out"
    words = [compiler, "--root", tmp_path, tmp_path / "deep/x.cu", out, "--depfile", f"{out}.d"]
    command = [sys.executable, "-m", "cuffi.caffe_layers.make.rewrite_layer", *words]
    subprocess.run(command, cwd=ROOT, check=True)
    text = out.read_text()
    assert text.splitlines(True)[1] == first and launch in text
    assert (tmp_path / "made/a.cuh").exists() and f"{tmp_path}/a.cuh" in (
        tmp_path / "made/deep/x.out.d"
    ).read_text()
    assert out.with_name("x.out.loops").exists() == (compiler == "for_nvcc")


if __name__ == "__main__":
    os.chdir(CASES)
    update(CASES, outputs())

"""The source rewriter: pairs of input and output, refusals, and the command.

rewrite/x.cu is rewritten to exactly x.expected (a local header sub/y.h to sub/y.h.expected);
rewrite/refuse_x.cu is refused, at the line and with the words that its first line gives.
After a deliberate change: `PYTHONPATH=.:tests python tests/tools/cuda/test_rewrite.py --update` writes the goldens
anew, and shows the diff.
"""

import os
import subprocess
import sys

import pytest
from support.compiler import WORDS
from support.rewriting import CASES, rewrite, update
from support.workshop import ROOT

from tools.cuda import rewrite as cuda_rewrite
from tools.cuda.for_nvcc import NvccRewriter
from tools.cuda.source import Source, local_headers
from tools.files import depfile, read

ENV = os.environ | {"PYTHONPATH": str(ROOT)}


GOLDEN = sorted(p.stem for p in CASES.glob("*.cu") if not p.stem.startswith("refuse_"))


def outputs(case):
    """Golden file -> the text that it should hold. Runs in CASES: the path in #line is the one given."""
    texts, problems, _ = rewrite(f"{case}.cu")
    assert not problems, "\n".join(map(str, problems))
    return {CASES / (f"{name or case}.expected"): text for name, text in texts.items()}


@pytest.fixture
def command(tmp_path):
    """Run the command on a source text; returns what it did and where the output would be."""

    def run(text, *headers):
        for name, header in headers:
            (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "src" / name).write_text(header)
        (tmp_path / "src").mkdir(exist_ok=True)
        (tmp_path / "src" / "x.cu").write_text(text)
        arguments = [
            sys.executable,
            "-m",
            "tools.cuda.to_host",
            "src/x.cu",
            "out/x.cpp",
            "--depfile",
            "out/x.d",
        ]
        done = subprocess.run(arguments, cwd=tmp_path, env=ENV, capture_output=True, text=True)
        return done, tmp_path / "out"

    return run


@pytest.mark.parametrize("case", GOLDEN)
def test_golden(case, in_cases):
    for path, text in outputs(case).items():
        assert text == read(path), (
            f"{path.name} differs; `PYTHONPATH=.:tests python tests/tools/cuda/test_rewrite.py --update` shows how"
        )


SCALE = "__global__ void scale(const int n, float* x) { CUDA_KERNEL_LOOP(i, n) { x[i] = x[i] * 2; } }\n"
OTHER = "__global__ void scale(float* x) { x[threadIdx.x] = 0; }\n"


@pytest.mark.parametrize(
    ("kernels", "config", "wanted"),
    [
        (
            SCALE,
            "CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS",
            "vector_blocks(n, scale), ::cuffi::kVectorThreads",
        ),
        (SCALE, "CAFFE_GET_BLOCKS(n), caffe::CAFFE_CUDA_NUM_THREADS , 0, s", "::cuffi::kVectorThreads, 0, s"),
        (SCALE, "CAFFE_GET_BLOCKS(n), 256", None),
        (SCALE, "CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS / 2", None),
        (SCALE, "CAFFE_GET_BLOCKS(n) + 1, CAFFE_CUDA_NUM_THREADS", None),
        (SCALE + OTHER, "CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS", None),
    ],
)
def test_launches_of_vector_loops_have_smaller_grids_and_blocks(tmp_path, kernels, config, wanted):
    (tmp_path / "x.cu").write_text(f"{kernels}void go(int n, float* x) {{ scale<<<{config}>>>(n, x); }}\n")
    texts, _, _ = cuda_rewrite.rewrite(str(tmp_path / "x.cu"), NvccRewriter, "tool", "")
    assert (wanted or f"<<<{config}>>>") in texts[""]


def test_ptx_and_votes_of_before_cuda_9_name_their_lanes(tmp_path):
    old = 'asm("{.reg .pred p; shfl.up.b32 r0|p, %1, %2, %3;" "vote.ballot.b32 %0, p; }" : "=r"(y) : "r"(x));'
    vote = "#define __all(x) __all_sync(~0u, x)\ny = __ballot (x) + __any(x);"
    (tmp_path / "x.cu").write_text(
        f"__device__ void f(int x, int y) {{\n#if __CUDA_ARCH__ >= 300\n{old}\n{vote}\n#endif\n}}\n"
    )
    text = cuda_rewrite.rewrite(str(tmp_path / "x.cu"), NvccRewriter, "tool", "")[0][""]
    assert "shfl.sync.up.b32 r0|p, %1, %2, %3, 0xffffffff;" in text
    assert '"vote.sync.ballot.b32 %0, p, 0xffffffff; }"' in text
    assert "y = __ballot_sync (0xffffffffu, x) + __any_sync(0xffffffffu, x);" in text
    assert "#define __all(x) __all_sync(~0u, x)" in text


@pytest.mark.parametrize("case", GOLDEN)
def test_every_line_stays_where_it_was(case, in_cases):
    text = rewrite(f"{case}.cu")[0][""]
    body = text.split("#line 1", 1)[1].split("\n", 1)[1]
    assert body.count("\n") == read(f"{case}.cu").count("\n")


@pytest.mark.skipif(not (ROOT / "include/host/cuda_runtime.h").exists(), reason="no host header in this tree")
def test_outputs_compile(in_cases, tmp_path):
    """All outputs in one translation unit, each in a namespace of its own, because the headers cost most."""
    umbrella = "".join(
        f"#include <{name}>\n"
        for name in ("iostream", "string", "vector", "cuda_runtime.h", "caffe_cuda_macro.h")
    )
    for case in GOLDEN:
        for path, text in outputs(case).items():
            target = tmp_path / path.relative_to(CASES).with_suffix("")
            target = target if target.suffix else target.with_suffix(".cpp")
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(text.encode("latin-1"))
        umbrella += f'namespace case_{case} {{\n#include "{case}.cpp"\n}}\n'
    (tmp_path / "all.cpp").write_text(umbrella)
    flags = [
        "-std=c++17",
        "-fsyntax-only",
        "-DCAFFE_HOST_BACKEND=1",
        f"-I{ROOT}/include",
        f"-I{ROOT}/include/host",
    ]
    done = subprocess.run([*WORDS, *flags, str(tmp_path / "all.cpp")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ------------------------------------------------------------------------------------- the command


def test_command_writes_output_headers_and_dependencies(command):
    done, out = command(
        '#include "sub/a.cuh"\n__global__ void k() {}\n',
        ("sub/a.cuh", '#include "../b.h"\n__global__ void h() {}\n'),
        ("b.h", "int b();\n"),
    )
    assert done.returncode == 0, done.stderr
    assert sorted(p.relative_to(out).as_posix() for p in out.rglob("*.*")) == [
        "b.h",
        "sub/a.cuh",
        "x.cpp",
        "x.d",
    ]
    assert (out / "x.d").read_text() == (
        "out/x.cpp: src/x.cu src/sub/a.cuh src/b.h\nsrc/sub/a.cuh:\nsrc/b.h:\n"
    )
    assert '#line 1 "src/x.cu"\n' in (out / "x.cpp").read_text()
    assert "#include <cuda_runtime.h>" not in (out / "b.h").read_text()


def test_command_touches_the_output_but_not_unchanged_headers(command):
    header = ("a.cuh", "__global__ void h() {}\n")
    _, out = command('#include "a.cuh"\n', header)
    for name in ("x.cpp", "a.cuh"):
        os.utime(out / name, (1, 1))
    command('#include "a.cuh"\n', header)
    assert (out / "x.cpp").stat().st_mtime > 1
    assert (out / "a.cuh").stat().st_mtime == 1


def test_command_names_every_problem_and_leaves_no_output(command):
    command("int fine;\n")
    done, out = command("void f() {\n  k<<<1(x);\n  k<<<1, 2(x);\n}\n")
    assert done.returncode == 1
    assert not (out / "x.cpp").exists()
    assert [line.split(" error: ")[0] for line in done.stderr.splitlines()] == [
        "src/x.cu:2:4:",
        "src/x.cu:3:4:",
    ]


def test_command_never_overwrites_local_headers(tmp_path):
    (tmp_path / "x.cu").write_text('#include "a.h"\n')
    (tmp_path / "a.h").write_text("int a;\n")
    arguments = [sys.executable, "-m", "tools.cuda.to_host", "x.cu", "x.cpp"]
    done = subprocess.run(arguments, cwd=tmp_path, env=ENV, capture_output=True, text=True)
    assert done.returncode == 1 and "overwritten" in done.stderr
    assert (tmp_path / "a.h").read_text() == "int a;\n"


def test_missing_source_is_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tools.cuda.to_host", "no.cu", "x.cpp"],
        cwd=tmp_path,
        env=ENV,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("no.cu:1:1: error: ") and done.stderr.count("\n") == 1


def test_header_outside_the_source_folder_is_left_to_the_include_path(command, tmp_path):
    (tmp_path / "outside.h").write_text("int outside;\n")
    done, out = command('#include "../outside.h"\n#include "absent.h"\n')
    assert done.returncode == 0
    assert sorted(p.name for p in out.iterdir()) == ["x.cpp", "x.d"]


def test_headers_that_include_each_other_are_read_once(command):
    done, out = command('#include "a.h"\n', ("a.h", '#include "b.h"\n'), ("b.h", '#include "a.h"\n'))
    assert done.returncode == 0
    assert (out / "x.d").read_text().startswith("out/x.cpp: src/x.cu src/a.h src/b.h\n")


def test_depfile_escapes_what_make_would_read():
    assert depfile("o $x.cpp", ["a b.cu"]) == "o\\ $$x.cpp: a\\ b.cu\n"


def test_files_that_others_are_writing(tmp_path):
    """A folder is cleared of headers whose source is gone while other steps of make write into it."""
    (tmp_path / "made").mkdir()
    banner = cuda_rewrite.BANNER.format("cuda/to_host.py", "old.h")
    (tmp_path / "made" / "old.h").write_text(banner)
    (tmp_path / "made" / "vanished.o").symlink_to("nowhere")  # listed, and gone when it is opened
    (tmp_path / "made" / "x.o.partial").write_bytes(b"half")
    cuda_rewrite.remove_orphans(str(tmp_path / "made"), str(tmp_path))
    assert sorted(os.listdir(tmp_path / "made")) == ["vanished.o", "x.o.partial"]


# -------------------------------------------------------------------------------- analysis and lexer


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        os.chdir(CASES)
        update(CASES, {path: text for case in GOLDEN for path, text in outputs(case).items()})
    else:
        sys.exit(pytest.main([__file__, *sys.argv[1:]]))


def test_local_headers_in_angle_brackets(tmp_path):
    """A kernel's own headers are included by quotes. Of a Caffe folder any include may mean one of its files."""
    for name, text in {
        "a.cu": '#include <b.h>\n#include "c.h"\n',
        "b.h": "#include <c.h>\n",
        "c.h": "\n",
    }.items():
        (tmp_path / name).write_text(text)
    source = Source(read(tmp_path / "a.cu"), "a.cu")
    assert list(local_headers(source, str(tmp_path), "a.cu")) == ["c.h"]
    known = {"b.h": "b.h", "c.h": "c.h"}
    assert list(local_headers(source, str(tmp_path), "a.cu", known.get)) == ["b.h", "c.h"]

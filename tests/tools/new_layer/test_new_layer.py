"""make new: a new layer passes its tests as written; refusals."""

import errno
import os
import re
import subprocess
import sys

import pytest
from conftest import make
from support import python_with_torch
from support.new_layer import ROOT, new

from tools.files import write as write_file
from tools.new_layer import __main__ as new_layer
from tools.refused import Refused

# ------------------------------------------------------------------------------------ a plain layer


ROW_MAX = {
    "row_max.h": """
// bottom: [rows * columns]; top, place: [rows]
int row_max_forward(const float* bottom, float* top, int32_t* place, int64_t rows, int64_t columns, void* stream);
// top_diff, place: [rows]; bottom_diff: [rows * columns]
int row_max_backward(const float* top_diff, const int32_t* place, float* bottom_diff, int64_t rows, int64_t columns,
                     void* stream);
""",
    "row_max.cu": """
#include "caffe_cuda_macro.h"

__global__ void Forward(const int rows, const int columns, const float* bottom, float* top, int32_t* place) {
  CUDA_KERNEL_LOOP(row, rows) {
    int best = 0;
    for (int i = 1; i < columns; i++)
      if (bottom[row * columns + i] > bottom[row * columns + best]) best = i;
    top[row] = bottom[row * columns + best];
    place[row] = best;
  }
}

__global__ void Backward(const int n, const int columns, const float* top_diff, const int32_t* place, float* diff) {
  CUDA_KERNEL_LOOP(i, n) { diff[i] = place[i / columns] == i % columns ? top_diff[i / columns] : 0; }
}

extern "C" int row_max_forward(const float* bottom, float* top, int32_t* place, int64_t rows, int64_t columns,
                               void* stream) {
  Forward<<<CAFFE_GET_BLOCKS(rows), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(rows, columns, bottom, top,
                                                                                     place);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int row_max_backward(const float* top_diff, const int32_t* place, float* bottom_diff, int64_t rows,
                                int64_t columns, void* stream) {
  const int64_t n = rows * columns;
  Backward<<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(n, columns, top_diff, place,
                                                                                    bottom_diff);
  return CAFFE_LAUNCH_STATUS();
}
""",
    "__init__.py": """
import torch
from torch import Tensor

from .._runtime import Layer, operator

layer = Layer(__name__, dtypes=(torch.float32,))


@operator(layer)
def row_max(bottom: Tensor) -> tuple[Tensor, Tensor]:
    rows, columns = bottom.shape
    top, place = bottom.new_empty(rows), bottom.new_empty(rows, dtype=torch.int32)
    layer.row_max_forward(bottom, top, place, rows, columns)
    return top, place


@operator(layer)
def row_max_backward(top_diff: Tensor, place: Tensor, columns: int) -> Tensor:
    bottom_diff = top_diff.new_empty(top_diff.shape[0], columns)
    layer.row_max_backward(top_diff, place, bottom_diff, top_diff.shape[0], columns)
    return bottom_diff


def save(ctx, arguments, tops):
    ctx.save_for_backward(tops[1])
    ctx.columns = arguments[0].shape[1]


@row_max.backward(save=save)
def _(ctx, top_diff, _):
    return row_max_backward(top_diff, *ctx.saved_tensors, ctx.columns)
""",
    "cases.py": """
from .._runtime.cases import Case
from . import row_max


def reference(bottom):
    top, place = bottom.max(1)
    return top, place.int()


CASES = [Case(function=row_max, reference=reference, inputs={"rows": lambda draw: (draw.normal(7, 5),)})]
""",
}


def test_layers_of_a_folder_pass_the_suite(tmp_path):
    """A plain layer as it is made, and one of a user's: with indices beside its result, as old extensions return them,
    without a gradient, of a layer that computes in float alone."""
    layers_dir = tmp_path / "my_layers"
    done = make("new", "LAYER=my_square", f"LAYERS_DIR={layers_dir}")
    assert done.returncode == 0, done.stderr
    assert "make LAYERS=my_square" in done.stdout
    names = {p.name for p in (layers_dir / "my_square").iterdir()}
    assert names == {"my_square.h", "my_square.cu", "__init__.py", "cases.py"}
    assert "class MySquare(nn.Module)" in (layers_dir / "my_square" / "__init__.py").read_text()
    for name, text in ROW_MAX.items():
        write_file(str(layers_dir / "row_max" / name), text.lstrip())
    passes_the_suite(layers_dir, "my_square", "row_max")
    cases = [sys.executable, "-m", "tools.cases.run_cases", f"--layers-dir={layers_dir}"]
    done = python_with_torch.run(cases)
    assert done.returncode == 0 and "wrong: none" in done.stdout, done.stdout + done.stderr


def passes_the_suite(layers_dir, *layers):
    built = make("libraries", f"LAYERS_DIR={layers_dir}", "NVCC=", timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    environment = os.environ | {"LAYERS_DIR": str(layers_dir)}
    for word in ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST"):
        environment.pop(word, None)
    suite = [sys.executable, ROOT / "test.py", "-v", "-p", "no:cacheprovider", "tests/layers"]
    done = python_with_torch.run(suite, env=environment, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:]
    assert not re.search(r" FAILED| ERROR|failed|errors", done.stdout)
    for layer in layers:
        assert len(re.findall(rf"\[{layer}\b.* PASSED", done.stdout)) > 50


def test_plain_files_are_tidy(tmp_path):
    new("--layers-dir", tmp_path, "foo")
    for file in (tmp_path / "foo").iterdir():
        text = file.read_text()
        assert "$" not in text and not re.search(r"[ \t]\n", text) and text.endswith("\n")
        assert max(map(len, text.split("\n"))) <= 110


def test_own_gitignore_stays(tmp_path):
    (tmp_path / ".gitignore").write_text("mine\n")
    assert new("--layers-dir", tmp_path, "foo").returncode == 0
    assert (tmp_path / ".gitignore").read_text() == "mine\n"
    new("--layers-dir", tmp_path / "other", "foo")
    assert "*.abi3.so" in (tmp_path / "other" / ".gitignore").read_text()


# ------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "make new LAYER=foo"),
        ("Foo", "named like a Python module"),
        ("_foo", "named like a Python module"),
        ("2foo", "named like a Python module"),
        ("foo-bar", "named like a Python module"),
        ("a/b", "named like a Python module"),
        ("lambda", "a Python keyword"),
        ("layer", "used by the toolkit"),
        ("build", "used by the toolkit"),
    ],
)
def test_bad_name(tmp_path, name, message):
    done = new("--layers-dir", tmp_path / "layers", name)
    assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "layers").exists()


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "foo").mkdir()
    (tmp_path / "foo" / "mine").write_text("mine")
    done = new("--layers-dir", tmp_path, "foo")
    assert done.returncode == 1 and "exists already" in done.stderr
    assert [p.name for p in (tmp_path / "foo").iterdir()] == ["mine"]


def test_a_folder_that_make_cannot_build_in_gets_no_layer(tmp_path, capsys):
    folder = tmp_path / "with space"
    assert new_layer.main(["--layers-dir", str(folder), "foo"]) == 1
    assert "make new: LAYERS_DIR: make cannot work in a path with spaces" in capsys.readouterr().err
    assert not folder.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('#include "caffe/layer.hpp"\n__global__ void k(int* x) {}\n', "make port CAFFE="),
        ("__global__ void k(int* x) {}\nvoid f(const Blob<float>* b);\n", "make port CAFFE="),
        ("#include <torch/extension.h>\n__global__ void k(int* x) {}\n", "docs/use-a-torch-extension.md"),
        ("void f(at::Tensor x);\n", "docs/use-a-torch-extension.md"),
        ("#include <THC/THC.h>\n__global__ void k(int* x) {}\n", "make ffi EXT="),
        ("__global__ void k(int* x) {}\n", "import load_inline` and `load_inline("),
        ("int x;\n", "a file without kernels"),
        (None, "No such file or directory. For kernels: in Python, `from cuffi import load_inline`"),
    ],
)
def test_from_names_the_command_that_takes_the_file(tmp_path, text, message):
    """`make new FROM=` copied kernels, until each kind of file had a command that takes it as it is."""
    if text is not None:
        (tmp_path / "x.cu").write_text(text)
    done = new("--layers-dir", tmp_path / "layers", "--from", tmp_path / "x.cu", "foo")
    assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "layers").exists()


# ------------------------------------------------------------------------------------- a run that ends early


@pytest.mark.parametrize("written", [0, 2, 4])
def test_a_disk_that_is_full(tmp_path, monkeypatch, written):
    """No partial layer and no other files are left; the next run writes the whole layer."""
    left = iter(range(written))

    def write(path, text):
        if next(left, None) is None:
            path.parent.mkdir(exist_ok=True)
            path.write_text("")
            raise OSError(errno.ENOSPC, "No space left on device")
        write_file(path, text)

    monkeypatch.setattr(new_layer, "write_file", write)
    with pytest.raises(Refused, match=r"/foo: No space left"):
        new_layer.write(tmp_path, "foo", new_layer.plain("foo"))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    assert len(new_layer.write(tmp_path, "foo", new_layer.plain("foo"))) == 5
    assert {p.name for p in tmp_path.rglob("*")} == {
        ".gitignore", "foo", "foo.h", "foo.cu", "__init__.py", "cases.py"
    }  # fmt: skip


def test_what_a_killed_run_left(tmp_path):
    (tmp_path / ".foo.partial").mkdir()
    (tmp_path / ".foo.partial" / "fo").write_text("")
    new_layer.write(tmp_path, "foo", new_layer.plain("foo"))
    assert {p.name for p in tmp_path.iterdir()} == {".gitignore", "foo"}
    assert not (tmp_path / "foo" / "fo").exists()


def test_two_at_once(tmp_path):
    """One makes the layer, the other says that it exists."""
    command = [sys.executable, "-m", "tools.new_layer", "--layers-dir", str(tmp_path), "foo"]
    runs = [subprocess.Popen(command, cwd=ROOT, stdout=-1, stderr=-1, text=True) for _ in range(4)]
    said = [run.communicate() for run in runs]
    assert sorted(run.returncode for run in runs) == [0, 1, 1, 1]
    assert all("exists already: nothing was changed" in err for _, err in said if err), said
    assert {p.name for p in tmp_path.iterdir()} == {".gitignore", "foo"}

"""make new FROM=: a layer from a Caffe .cu builds, and computes."""

import importlib
import os
import re
import sys
from pathlib import Path

import pytest
import torch
from conftest import make
from support import python_with_torch
from support.new_layer import ROOT, derive, new_from
from support.workshop import made_once

from cuffi.runtime.cases import load_package
from tools.new_layer.caffe_file import split

CLAMP = r"""// Copyright: somebody.

#include <algorithm>
#include <vector>

#include "caffe/layers/clamp_layer.hpp"
#include "caffe/util/math_functions.hpp"

#define TWICE(x) \
  ((x) + (x))

namespace caffe {

const float kSlope = 0.5;

// Clamps one number.
template <typename Dtype>
__device__ Dtype clamped(Dtype x, Dtype low) {

  return x > low ? x : low;  /* not nested */
}

// Comment of the kernel.
template <typename Dtype>
__global__ void ClampForward(const int n, const Dtype* in, Dtype* out, Dtype lambda) {
  CUDA_KERNEL_LOOP(index, n) {
    out[index] = clamped(in[index], lambda) + Dtype(0 * kSlope);


  }
}

// Comment of the host code.
template <typename Dtype>
void ClampLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom,
    const vector<Blob<Dtype>*>& top) {
  const int count = bottom[0]->count();  /* a comment */
  // NOLINT_NEXT_LINE(whitespace/operators)
  ClampForward<Dtype><< <CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS> >>(
      count, bottom[0]->gpu_data(), top[0]->mutable_gpu_data(), low_);
  LOG(INFO) << \
      "done";
  CUDA_POST_KERNEL_CHECK;
}

template <typename Dtype>
__global__ void ClampBackward(const int n, const Dtype* in_diff, const Dtype* in_data, Dtype* stream,
    Dtype dtype) {
  CUDA_KERNEL_LOOP(index, n) {
    stream[index] = in_diff[index] * (in_data[index] > dtype);
  }
}

template <typename Dtype>
void ClampLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top,
    const vector<bool>& propagate_down, const vector<Blob<Dtype>*>& bottom) {
  ClampBackward<Dtype><<<CAFFE_GET_BLOCKS(bottom[0]->count()), CAFFE_CUDA_NUM_THREADS>>>(
      bottom[0]->count(), top[0]->gpu_diff(), bottom[0]->gpu_data(), bottom[0]->mutable_gpu_diff(), low_);
}

INSTANTIATE_LAYER_GPU_FUNCS(ClampLayer);

}  // namespace caffe
"""

# Largest of each window, with where it was, for windows that overlap or cover the edge.
WINDOW = r"""
#include <cfloat>
#include "caffe/layers/window_layer.hpp"
namespace caffe {
template <typename Dtype, bool keep_where>
__global__ void WindowMaxForward(const int nthreads, const Dtype* const bottom_data, const int width,
    const int pooled_width, const int kernel_w, Dtype* const top_data, int* mask, const bool negate) {
  CUDA_KERNEL_LOOP(index, nthreads) {
    const int start = index % pooled_width * kernel_w;
    const Dtype* const row = bottom_data + index / pooled_width * width;
    Dtype best = -FLT_MAX;
    int at = -1;
    for (int w = start; w < min(start + kernel_w, width); ++w) {
      if (row[w] > best) { best = row[w]; at = w; }
    }
    if (width > 0) top_data[index] = negate ? -best : best;
    if (keep_where) mask[index] = at;
  }
}
template <typename Dtype>
void WindowLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  int count = top[0]->count();
  if (top.size() > 1) {
    WindowMaxForward<Dtype, true><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS>>>(count,
        bottom[0]->gpu_data(), width_, pooled_width_, kernel_w_, top[0]->mutable_gpu_data(), mask, false);
  } else {
    WindowMaxForward<Dtype, false><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS>>>(count,
        bottom[0]->gpu_data(), width_, pooled_width_, kernel_w_, top[0]->mutable_gpu_data(), NULL, false);
  }
}
INSTANTIATE_LAYER_GPU_FUNCS(WindowLayer);
}
"""

# One block a row, its threads share memory; grid and block come from host code.
ROW_SUM = r"""
#include "caffe/layers/row_sum_layer.hpp"
namespace caffe {
template <typename Dtype>
__global__ void RowSum(const Dtype* data, const int columns, Dtype* sums) {
  extern __shared__ char memory[];
  Dtype* partial = reinterpret_cast<Dtype*>(memory);
  Dtype sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += data[blockIdx.x * columns + i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < blockDim.x; ++i) sum += partial[i];
    sums[blockIdx.x] = sum;
  }
}
template <typename Dtype>
__global__ void Scale2D(Dtype* data, const unsigned int* rows, const int columns, const Dtype by) {
  const int row = blockIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column < columns) data[row * columns + column] *= by * Dtype(rows[row]);
}
template <typename Dtype>
void RowSumLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int threads = this->threads_;
  RowSum<Dtype><<<bottom[0]->num(), threads, threads * sizeof(Dtype)>>>(
      bottom[0]->gpu_data(), bottom[0]->count(1), top[0]->mutable_gpu_data());
  dim3 blocks(this->blocks_, bottom[0]->num());
  Scale2D<Dtype><<<blocks, threads>>>(top[0]->mutable_gpu_data(), rows_, bottom[0]->count(1), Dtype(2));
}
}
"""

# Its own header included cuRAND's, and Caffe's those of assert, printf and the limits.
NOISE = """#include "caffe/layers/noise_layer.hpp"

namespace caffe {

template <typename Dtype>
__global__ void NoiseForward(const int n, const unsigned int seed, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, n) {
    assert(i < INT_MAX);
    curandState state;
    curand_init(seed, i, 0, &state);
    const Dtype drawn = curand_uniform(&state);
    if (!(drawn > 0 && drawn <= 1)) printf("not uniform at %d", i);
    out[i] = in[i] + drawn;
  }
}

template <typename Dtype>
void NoiseLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int count = bottom[0]->count();
  NoiseForward<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS>>>(
      count, 7, bottom[0]->gpu_data(), top[0]->mutable_gpu_data());
}
}  // namespace caffe
"""


@pytest.fixture(scope="module")
def from_caffe(shared_folder):
    """The layers above, made, built for the host, loaded: (folder, make's output, modules by name)."""
    folder = made_once(shared_folder / "from_caffe", build_from_caffe)
    package = load_package(folder / "layers", "new_layers")
    modules = {n: importlib.import_module(f"{package}.{n}") for n in ("clamp", "window", "row_sum", "noise")}
    return folder / "layers", (folder / "said").read_text(), modules


def build_from_caffe(folder: Path) -> None:
    for name, text in (("clamp", CLAMP), ("window", WINDOW), ("row_sum", ROW_SUM), ("noise", NOISE)):
        done = new_from(folder, name, text)
        assert done.returncode == 0, done.stderr
    done = make(f"LAYERS_DIR={folder / 'layers'}", "NVCC=", "all", with_torch=True, timeout=300)
    (folder / "said").write_text(done.stdout + done.stderr)


def test_from_caffe_builds(from_caffe):
    folder, output, _ = from_caffe
    for name in ("clamp", "window", "row_sum", "noise"):
        assert (folder / name / "_host.abi3.so").exists(), output
    assert "not filled in" in " ".join(re.sub(r"[^\w\s]", " ", output).split())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_clamp_computes(from_caffe, dtype):
    """`in` and `lambda`, `stream` and `dtype` are names of the kernels' own parameters here."""
    layer = from_caffe[2]["clamp"].layer
    x = torch.linspace(-2, 2, 1000, dtype=dtype)
    top, diff = torch.empty_like(x), torch.empty_like(x)
    layer.clamp_forward(x.numel(), x, top, 0.25)
    assert torch.equal(top, x.clamp(min=0.25))
    layer.clamp_backward(x.numel(), top, x, diff, 0.25)
    assert torch.equal(diff, top * (x > 0.25))


def test_count_that_is_no_tensors(from_caffe):
    layer, x = from_caffe[2]["clamp"].layer, torch.zeros(4)
    for count in (5, 2**31, -1):
        with pytest.raises(ValueError, match=rf"clamp: in_: expected memory for \[{count}\] elements"):
            layer.clamp_forward(count, x, x.clone(), 0.0)


def test_count_that_does_not_fit(from_caffe):
    """The accessed memory is unknown, because the loop's accesses are conditional."""
    layer, x = from_caffe[2]["window"].layer, torch.zeros(4)
    with pytest.raises(RuntimeError, match=r"window_max_forward.*nthreads: .*does not fit"):
        layer.window_max_forward(2**31, x, 4, 1, 1, x.clone(), x.int(), True, False)


@pytest.mark.parametrize("keep_where", [True, False])
def test_window_computes(from_caffe, keep_where):
    layer = from_caffe[2]["window"].layer
    x = torch.randn(6, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    top, where = torch.empty(6, 4, dtype=x.dtype), torch.full((6, 4), -7, dtype=torch.int32)
    layer.window_max_forward(24, x, 10, 4, 3, top, where, True, keep_where)
    wanted, at = torch.nn.functional.max_pool1d(x, 3, ceil_mode=True, return_indices=True)
    assert torch.equal(-top, wanted)
    assert torch.equal(where.long(), at if keep_where else torch.full_like(at, -7))


def test_row_sum_computes(from_caffe):
    layer = from_caffe[2]["row_sum"].layer
    x, sums = torch.arange(70, dtype=torch.float32).reshape(7, 10), torch.empty(7)
    layer.row_sum_kernel(x, 10, sums, 7, 4, 4 * x.element_size())
    assert torch.equal(sums, x.sum(1))
    rows = torch.arange(7, dtype=torch.int32)
    wanted = x * rows[:, None] * 3
    layer.row_sum_scale2_d(x, rows, 10, 3.0, 3, 7, 1, 4)
    assert torch.equal(x, wanted)


def test_what_the_layers_headers_included(from_caffe):
    layer = from_caffe[2]["noise"].layer
    x, y = torch.full((4096,), 3.0), torch.empty(4096)
    layer.noise_forward(x.numel(), 7, x, y)
    drawn = y - x
    assert (
        drawn.min() >= 0
        and drawn.max() <= 1
        and abs(drawn.mean() - 0.5) < 0.03
        and len(drawn.unique()) > 4000
    )


def test_unfinished_functions_say_so(from_caffe):
    _, _, modules = from_caffe
    x = torch.zeros(2, 3)
    for name, function in (("clamp", "clamp"), ("window", "window_max"), ("row_sum", "row_sum")):
        with pytest.raises(RuntimeError, match=f"{name}: not filled in: write {function} in .*__init__.py"):
            getattr(modules[name], function)(x)
        with pytest.raises(RuntimeError, match=f"{name}: not filled in: say your cases in .*cases.py"):
            importlib.import_module(f"new_layers.{name}.cases")
    assert "layer.clamp_forward(n, in_, out, lambda_)" in modules["clamp"].clamp.__doc__


def test_unfinished_layer_fails_the_suite(from_caffe):
    environment = os.environ | {"LAYERS_DIR": str(from_caffe[0])}
    suite = [sys.executable, ROOT / "test.py", "-q", "-p", "no:cacheprovider", "tests/layers/test_values.py"]
    done = python_with_torch.run(suite, env=environment)
    assert done.returncode == 1
    for name in ("clamp", "window", "row_sum"):
        assert f"{name}: not filled in: say your cases" in done.stdout


def test_sources_compile_for_cuda(from_caffe, nvcc):
    """Kernels and launchers under nvcc; where there is no GPU this says only that they compile."""
    done = make(f"LAYERS_DIR={from_caffe[0]}", f"NVCC={nvcc}", "ARCH=sm_80", "-j2", "libraries", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


# As torch.utils.ffi extensions had it, some of them in the .cu itself.
EXTENSION = """#include <THC/THC.h>
#include "half_kernel.h"

extern THCState *state;
static THCudaTensor *cached = NULL;

__global__ void half_of(const int n, const float *in, float *out, int *places) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { out[i] = in[i] / 2; places[i] = i; }
}

int half_forward_cuda(THCudaTensor *in, THCudaTensor *out, THCudaIntTensor *places) {
  int n = THCudaTensor_nElement(state, in);
  half_of<<<(n + 255) / 256, 256, 0, THCState_getCurrentStream(state)>>>(
      n, THCudaTensor_data(state, in), THCudaTensor_data(state, out), THCudaIntTensor_data(state, places));
  THCudaCheck(cudaGetLastError());
  return 1;
}
"""


def test_an_extension_of_old_torch(tmp_path):
    """Its state is host code, and its kernels compute only in float. It contains nothing of Caffe."""
    done = new_from(tmp_path, "half_of", EXTENSION)
    assert done.returncode == 0, done.stderr
    text = {file.name: file.read_text() for file in (tmp_path / "layers" / "half_of").iterdir()}
    code, host = re.split(r"// -+ its host code.*\n", text["half_of.cu"])
    assert "THC" not in re.sub(r"//.*", "", code) and "extern THCState *state;" in host
    assert "layer = Layer(__name__, dtypes=(torch.float32,))" in text["__init__.py"]
    assert not re.search(r"from Caffe|Caffe's|Caffe,", "".join(text.values()))
    done = make("libraries", f"LAYERS_DIR={tmp_path}/layers", "NVCC=", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_device_code_is_kept_and_host_code_commented(tmp_path):
    assert new_from(tmp_path, "clamp", CLAMP).returncode == 0
    text = (tmp_path / "layers" / "clamp" / "clamp.cu").read_text()
    code, host = re.split(r"// -+ its host code.*\n", text)
    parts = split(CLAMP, "clamp_layer.cu")
    for function in parts.source.functions:
        body = CLAMP[function.head : function.end]
        if function.is_device_only:
            assert body in code
        else:
            assert function.name not in re.sub(r"//.*", "", code)
            commented = "\n".join(f"// {line}".rstrip() for line in body.split("\n"))
            assert commented in re.sub(r"\\ //\n", "\\\\\n", host)
    assert code.startswith("// Copyright: somebody.")
    assert "// Comment of the kernel.\ntemplate" in code and "// // Comment of the host code.\n" in host
    assert "#define TWICE" in code and "const float kSlope" in code and "#include <algorithm>" in code
    assert '#include "caffe/' not in re.sub(r"//.*", "", code) and '//   "caffe/layers/clamp' in code
    assert all(line.startswith("//") for line in host.splitlines())
    assert not any(line.endswith("\\") for line in host.splitlines())


def test_windows_line_ends_and_foreign_letters(tmp_path):
    text = CLAMP.replace("Clamps one number", "\u5939").encode("gbk").replace(b"\n", b"\r\n")
    assert new_from(tmp_path, "clamp", text).returncode == 0
    made = (tmp_path / "layers" / "clamp" / "clamp.cu").read_bytes()
    assert b"\r" not in made and "\u5939".encode("gbk") in made


def test_headers_from_beside_the_file(tmp_path):
    """An extension of 2017 has them. What its kernels name comes along, the innermost first. The rest does not."""
    (tmp_path / "boxes.h").write_text("#define CEIL_DIV(m, n) (((m) + (n) - 1) / (n))\n")
    (tmp_path / "nms_kernel.h").write_text(
        """// Somebody's licence.
#ifndef NMS_KERNEL_H_
#define NMS_KERNEL_H_
#include <cfloat>
#include "boxes.h"
extern "C" {
int const threads = sizeof(unsigned long long) * 8;
void nms(int count, const float* boxes, float* kept);
}
__device__ inline int groups(int n) { return CEIL_DIV(n, threads); }
#endif
"""
    )
    (tmp_path / "unused.cuh").write_text("__device__ int lost(Blob<float>* blob);\n")
    text = """#include "nms_kernel.h"
#include "unused.cuh"
#include "elsewhere.h"
__global__ void halve(const int n, const float* boxes, float* kept) {
  CUDA_KERNEL_LOOP(i, n) { kept[i] = boxes[i] / 2 + groups(n); }
}
void nms(int count, const float* boxes, float* kept) { halve<<<groups(count), threads>>>(count, boxes, kept); }
"""
    done = new_from(tmp_path, "halve", text)
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "layers" / "halve" / "halve.cu").read_text()
    code = made[made.index("#include") :].partition("// ---")[0]
    order = [
        "<cfloat>",
        '//   "unused.cuh"',
        '//   "elsewhere.h"',
        "CEIL_DIV(m, n)",
        "Somebody's licence",
        "int const threads",
        "groups(int n)",
        "halve(",
    ]
    assert [code.index(word) for word in order] == sorted(code.index(word) for word in order)
    assert "lost" not in made and '"nms_kernel.h"' not in code and "void nms" not in code
    done = make(f"LAYERS_DIR={tmp_path / 'layers'}", "NVCC=", "libraries", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_kernel_that_names_its_layers_class():
    text = """template <typename Dtype>
__global__ void gates(const int n, Dtype* x) { CUDA_KERNEL_LOOP(i, n) { x[i] = GateLayer<Dtype>::kForget; } }
template <typename Dtype>
__global__ void plain(const int n, Dtype* layer) { CUDA_KERNEL_LOOP(i, n) { layer[i] = 0; } }
"""
    launchers, left_out = derive(text)
    assert set(launchers) == {"plain"} and left_out == {"gates": "uses GateLayer, which only Caffe has"}


def test_preprocessor_branches():
    text = (
        "#ifdef USE_CUDNN\n#include <cudnn.h>\n__global__ void sync(float* x) { }\n#endif\n"
        "#ifndef CPU_ONLY\nnamespace caffe {\n__global__ void k(float* x, int n) "
        "{ CUDA_KERNEL_LOOP(i, n) x[i] = 0; }\n"
        "#ifdef DEBUG\nvoid host() { k<<<1, 1>>>(0, 0); }\n#endif\n}\n#endif\n"
        "#if 0\n__global__ void dead(float* x) {}\n#endif\n"
    )
    launchers, left_out = derive(text)
    assert set(launchers) == {"k"} and "preprocessor" in left_out["sync"]
    parts = split(text, "x.cu")
    assert parts.device.count("#if") == parts.device.count("#endif")
    assert parts.host.count("#if") == parts.host.count("#endif")
    assert "#ifdef DEBUG" not in parts.device and "void host" in parts.host

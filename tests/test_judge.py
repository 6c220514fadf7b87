"""python -m cuffi.judge: families of wrong kernels and their right siblings, whole programs, and bad input."""

import io
import json
import subprocess
import sys

import pytest
from support.processor import ON_ARM
from support.workshop import FIXTURES

from cuffi import judge as command
from cuffi.judge import judge, shown
from cuffi.judging.limits import Limits

HEAD = "#include <cuda_runtime.h>\n"
# Arrays of 256 zeros, a and b, on the device.
MAIN = """
int main() {{
  int *a, *b;
  cudaMalloc(&a, 1024); cudaMemset(a, 0, 1024);
  cudaMalloc(&b, 1024); cudaMemset(b, 0, 1024);
  {launch}
}}
"""

# A kernel, its launch, and the class that must be named, at the line with `// here`.
FAMILIES = {
    "block fence, two blocks": (
        """__global__ void k(int* a, int* b) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) { a[0] = 5; __threadfence_block(); atomicAdd(b, 1); }
  else if (atomicAdd(b, 0)) { __threadfence();
    a[1] = a[0]; }  // here
}""",
        "k<<<2, 32>>>(a, b);",
        "race",
    ),
    "block atomics of two blocks": (
        "__global__ void k(int* a, int* b) { if (threadIdx.x == 0)\n  atomicAdd_block(a, 1); }  // here",
        "k<<<2, 32>>>(a, b);",
        "race",
    ),
    "block atomics of one block": (
        "__global__ void k(int* a, int* b) { atomicAdd_block(a, 1); }",
        "k<<<1, 64>>>(a, b);",
        "ok",
    ),
    "a lock without its fence": (
        """__global__ void k(int* a, int* b) {
  if (threadIdx.x) return;
  while (atomicCAS(b, 0, 1)) {}
  a[0] += 1;  // here
  __threadfence();
  atomicExch(b, 0);
}""",
        "k<<<2, 32>>>(a, b);",
        "race",
    ),
    "a lock with its fences": (
        """__global__ void k(int* a, int* b) {
  if (threadIdx.x) return;
  while (atomicCAS(b, 0, 1)) {}
  __threadfence();
  a[0] += 1;
  __threadfence();
  atomicExch(b, 0);
}""",
        "k<<<2, 32>>>(a, b);",
        "ok",
    ),
    "a guard that is read plainly": (
        """__global__ void k(int* a, int* b) {
  if (a[0]  // here
      < 3) b[threadIdx.x] = 1;
  if (threadIdx.x % 2) atomicMax(a, threadIdx.x);
}""",
        "k<<<1, 64>>>(a, b);",
        "race",
    ),
    "a sum that is read after the own share": (
        """__global__ void k(int* a, int* b) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, 1);
  b[threadIdx.x] = sum;  // here
}""",
        "k<<<1, 64>>>(a, b);",
        "race",
    ),
    "the first of many readers": (
        """__global__ void k(int* a, int* b) {
  if (threadIdx.x == 5) b[5] = a[0];
  if (threadIdx.x >= 64) {
    b[threadIdx.x] = a[0];
    __syncwarp();
    if (threadIdx.x == 64) a[0] = 7;  // here
  }
}""",
        "k<<<1, 96>>>(a, b);",
        "race",
    ),
    "the value that is there": (
        "__global__ void k(int* a, int* b) { b[threadIdx.x] = a[0]; a[0] = 0; }",
        "k<<<2, 64>>>(a, b);",
        "ok",
    ),
    "the own element again, with another barrier missing": (
        """__global__ void k(int* a, int* b) {
  __shared__ int s[64];
  s[threadIdx.x] = 0;
  __syncthreads();
  s[threadIdx.x] = a[threadIdx.x];  // here
  b[threadIdx.x] = s[63 - threadIdx.x];
}""",
        "k<<<1, 64>>>(a, b);",
        "race",
    ),
    "a flag that all set, again and again": (
        "__global__ void k(int* a, int* b) { for (int i = 0; i < 3; ++i) a[0] = 1; }",
        "k<<<2, 64>>>(a, b);",
        "ok",
    ),
    "an own write of the value that all write, then read": (
        """__global__ void k(int* a, int* b) {
  __shared__ int* s;
  s = a;
  b[threadIdx.x] = s[threadIdx.x];
}""",
        "k<<<1, 64>>>(a, b);",
        "ok",
    ),
    "a value that all write, read by others": (
        """__global__ void k(int* a, int* b) {
  __shared__ int s[2];
  s[threadIdx.x % 2] = 5;
  b[threadIdx.x] = s[(threadIdx.x + 1) % 2];  // here
}""",
        "k<<<1, 64>>>(a, b);",
        "race",
    ),
    "a shared array of objects": (
        """#include <cuda_fp16.h>
struct Pair { int x, y; Pair() = default; __device__ Pair(int x, int y) : x(x), y(y) {} };
__global__ void k(int* a, int* b) {
  __shared__ half2 halves[64];
  __shared__ Pair pairs[64];
  halves[threadIdx.x] = __float2half2_rn(1);
  pairs[threadIdx.x] = Pair(threadIdx.x, 2);
  b[threadIdx.x] = pairs[threadIdx.x].x + int(__low2float(halves[threadIdx.x]));
}""",
        "k<<<2, 64>>>(a, b);",
        "ok",
    ),
    "a virtual function of an object in shared memory": (
        """#include <new>
struct Base { __device__ virtual int of(int) = 0; };
struct Twice : Base { __device__ int of(int x) override { return 2 * x; } };
__global__ void k(int* a, int* b) {
  __shared__ __align__(8) char place[sizeof(Twice)];
  __shared__ Base* object;
  if (threadIdx.x == 0) object = new (place) Twice;
  __syncthreads();
  b[threadIdx.x] = object->of(threadIdx.x);
}""",
        "k<<<2, 64>>>(a, b);",
        "ok",
    ),
    "what nobody reads": (
        "__global__ void k(int* a, int* b) { __shared__ int s[2];\n  s[threadIdx.x % 2] = threadIdx.x; }  // here",
        "k<<<1, 64>>>(a, b);",
        "race",
    ),
    "unset global memory": (
        "__global__ void k(int* a, int* b) {\n  b[threadIdx.x] = a[threadIdx.x]; }  // here",
        "int* c; cudaMalloc(&c, 256); cudaMemset(c, 0, 128); k<<<1, 64>>>(c, b);",
        "unset",
    ),
    "unset dynamic shared memory": (
        """__global__ void k(int* a, int* b) {
  extern __shared__ int s[];
  if (threadIdx.x) s[threadIdx.x] = 1;
  __syncthreads();
  b[threadIdx.x] = s[threadIdx.x];  // here
}""",
        "k<<<1, 64, 256>>>(a, b);",
        "unset",
    ),
    "an exchange sets memory": (
        "__global__ void k(int* a, int* b) { atomicExch(a + threadIdx.x, 3); b[threadIdx.x] = a[threadIdx.x]; }",
        "int* c; cudaMalloc(&c, 256); k<<<1, 64>>>(c, b);",
        "ok",
    ),
    "structures with padding": (
        """struct Two { char small; int large; };
__global__ void k(Two* a, Two* b) {
  __shared__ Two s[32];
  s[threadIdx.x].small = 1;
  s[threadIdx.x].large = 2;
  b[threadIdx.x] = s[threadIdx.x];
}""",
        "k<<<1, 32>>>((Two*)a, (Two*)b);",
        "ok",
    ),
    "threads that ended before a barrier": (
        """__global__ void k(int* a, int* b) {
  for (unsigned int i = 0; i <= threadIdx.x; ++i) {
    a[threadIdx.x] += 1;
    __syncthreads();  // here
  }
}""",
        "k<<<1, 64>>>(a, b);",
        "barrier",
    ),
    "threads that have returned before a barrier": (
        """__global__ void k(int* a, int* b) {
  if (threadIdx.x >= 50) return;
  a[threadIdx.x] = 1;
  __syncthreads();  // here
  b[threadIdx.x] = a[49 - threadIdx.x];
}""",
        "k<<<1, 64>>>(a, b);",
        "barrier, a warning",
    ),
    "a return after a barrier that threads passed by": (
        """__global__ void k(int* a, int* b) {
  if (threadIdx.x < 50) {
    a[threadIdx.x] = 1;
    __syncthreads();  // here
    if (threadIdx.x) return;
    b[0] = a[49];
  }
}""",
        "k<<<1, 64>>>(a, b);",
        "barrier",
    ),
    "a constant that a kernel writes": (
        "__constant__ float c[4] = {1, 2}, d;\n__global__ void k(int* a, int* b) {\n"
        "  if (threadIdx.x == 0) d = 3;  // here\n}",
        "k<<<1, 64>>>(a, b);",
        "constant",
    ),
    "a constant that the host writes": (
        "__constant__ int c[4];\n__global__ void k(int* a, int* b) { b[threadIdx.x] = c[threadIdx.x % 4]; }",
        "cudaMemcpyToSymbol(c, a, 16); k<<<1, 64>>>(a, b);",
        "ok",
    ),
    "a null pointer": (
        "__global__ void k(int* a, int* b) {\n  a[threadIdx.x] = 1;  // here\n}",
        "k<<<1, 64>>>(nullptr, b);",
        "null",
    ),
    "a division by zero": (
        "__global__ void k(int* a, int* b) {\n  b[threadIdx.x] = 7 / a[threadIdx.x];  // here\n}",
        "k<<<1, 64>>>(a, b);",
        "undefined" if ON_ARM else "arithmetic",
    ),
    "behind the dynamic shared memory": (
        "__global__ void k(int* a, int* b) { extern __shared__ int s[];\n  s[threadIdx.x + 1] = 1; }  // here",
        "k<<<1, 64, 256>>>(a, b);",
        "bounds",
    ),
    "far behind a small array": (
        "__global__ void k(int* a, int* b) {\n  a[8 + threadIdx.x] = 1;  // here\n}",
        "int* c; cudaMalloc(&c, 16); for (int i = 0; i < 9; ++i) new int[4]; k<<<1, 8>>>(c, b);",
        "bounds",
    ),
    "a wait for a later thread": (
        "__global__ void k(int* a, int* b) {\n"
        "  if (threadIdx.x == 0) while (!atomicAdd(a, 0)) {}\n  else atomicExch(a, 1);\n}",
        "k<<<1, 2>>>(a, b);",
        "ok",
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_families(family, tmp_path):
    kernel, launch, kind = FAMILIES[family]
    text = HEAD + kernel + MAIN.format(launch=launch)
    file = tmp_path / "k.cu"
    file.write_text(text)
    said = judge([file], limits=Limits(30))
    kind, _, allowed = kind.partition(", ")
    kinds = {one["kind"] for one in said["findings"]} or {"ok"}
    assert kind in kinds and (kind != "ok" or said["verdict"] == "ok"), said
    assert said["status"] == (kind != "ok" and not allowed) and said["ran"] == ["k"]
    assert not allowed or shown(said).splitlines()[0].endswith(f"k.cu: {kind}, a warning")
    if kind == "ok":
        return
    line = next(n for n, words in enumerate(text.splitlines(), 1) if "// here" in words)
    (told, *_) = [one for one in said["findings"] if one["kind"] == kind]
    assert f"k.cu:{line}" in told["text"] + told["place"], told


# The lesson of docs/judge-a-kernel.md.
LESSON = {
    "missing_atomic": "race",
    "missing_barrier": "race",
    "divergent_barrier": "barrier",
    "out_of_bounds": "bounds",
    "volatile_reduction": "race",
}


@pytest.mark.parametrize("name", LESSON)
def test_the_lesson(name, capsys):
    assert command.main([str(FIXTURES / "judge" / f"{name}.cu"), "--seconds=30"]) == 1
    text = capsys.readouterr().out
    assert text.splitlines()[0].endswith(f"{name}.cu: {LESSON[name]}"), text
    assert "within one warp" in text or name != "volatile_reduction"


def test_a_device_variable_is_named(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(
        HEAD + "__device__ int other[7], sums[4];\n__global__ void k() { sums[2] += threadIdx.x; }\n"
        "int main() { k<<<1, 64>>>(); }\n"
    )
    said = judge([file])
    assert "element 2 of sums (4 bytes)" in said["findings"][0]["text"]


def test_kernels_without_a_main(tmp_path):
    """By their types, or by the host function that launches them; sizes that no block divides."""
    file = tmp_path / "k.cu"
    file.write_text(
        "__global__ void add(float* sum, const float* x, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) *sum += x[i];\n}\n"
        "__global__ void twice(float* x, int n) {\n"
        "  int i = blockIdx.x * 32 + threadIdx.x;\n  if (i < n) x[i] *= 2;\n}\n"
        'extern "C" void solve(float* x, int n) { twice<<<(n + 31) / 32, 32>>>(x, n); }\n'
    )
    said = judge([file])
    assert said["verdict"] == "race" and said["ran"] == ["add", "twice"]
    assert {one["text"].split(":")[0] for one in said["findings"]} == {"race in kernel add"}


@pytest.mark.parametrize(
    "text, kind, status",
    [
        ("int f() { return 1; }\n", "no-kernel", 3),
        ("__global__ void k(int* a) { a[0] = b; }\n", "not-built", 3),
        ("struct S { S(int); int* p; }; __global__ void k(int** a) { a[0][0] = 1; }\n", "not-built", 3),
        (
            '__global__ void k() { asm("wgmma;"); }\nint main() { k<<<1, 1>>>(); }\n',
            "refused",
            3,
        ),
        ("#include <cudnn.h>\nint main() {}\n", "refused", 3),
        ("__global__ void k() {}\nint main() { for (;;) ; }\n", "hang", 3),
        ("#include <cuda_runtime.h>\n__global__ void k() {}\nint main() { return 0; }\n", "incomplete", 3),
        ("__global__ void k() {}\nint main() { k<<<1, 1>>>(); return 4; }\n", "wrong-status", 1),
        ("__global__ void k() {}\nint main(int n, char**) { if (n < 2) return 1; }\n", "incomplete", 3),
        (
            "__global__ void k() {}\nint main(int, char**) { int* a = new int[2]; return a[2]; }\n",
            "incomplete",
            3,
        ),
        ("__global__ void k() {}\nint main() { int* a = new int[2]; return a[2]; }\n", "bounds", 1),
        (
            '__global__ void k() {\n#ifdef __CUDA_ARCH__\n  asm("wgmma;");\n#endif\n}\nint main() { k<<<1, 1>>>(); }\n',
            "refused",
            3,
        ),
    ],
)
def test_bad_input_gets_a_class_and_no_traceback(text, kind, status, tmp_path, capsys):
    file = tmp_path / "k.cu"
    file.write_text(text)
    assert command.main([str(file), "--json", "--seconds=3"]) == status
    said = json.loads(capsys.readouterr().out)
    assert said["verdict"] == kind and said["findings"][0]["text"]


PRINTS = (
    HEAD
    + """__global__ void k(int* a) { a[threadIdx.x] = 2 * threadIdx.x; }
int main() {
  int *a, h[3];
  cudaMalloc(&a, 12); k<<<1, 3>>>(a); cudaMemcpy(h, a, 12, cudaMemcpyDeviceToHost);
  printf("%d %d %d.0000001 values\\n", h[0], h[1], h[2]);
}
"""
)


@pytest.mark.parametrize(
    "reference, kind, text",
    [
        ("print(0, 2, 4, 'values')", "ok", ""),
        (
            "print(0, 3, 4, 'values')",
            "different-result",
            "word 2 of the output is 2, and of the reference's 3",
        ),
        ("print(0, 2, 4)", "different-result", "the output has 4 words, the reference's 3"),
        ("print(x)", "incomplete", "NameError"),
    ],
)
def test_a_reference_that_prints(reference, kind, text, tmp_path):
    (tmp_path / "k.cu").write_text(PRINTS)
    (tmp_path / "ref.py").write_text(reference)
    said = judge([tmp_path / "k.cu"], reference=tmp_path / "ref.py")
    assert said["verdict"] == kind and text in str(said["findings"])


def test_a_reference_of_kernels_alone_has_nothing_to_compare(tmp_path):
    (tmp_path / "k.cu").write_text("__global__ void k(int* a) { a[threadIdx.x] = 2; }\n")
    (tmp_path / "ref.py").write_text("")
    said = judge([tmp_path / "k.cu"], reference=tmp_path / "ref.py")
    assert said["verdict"] == "incomplete" and "needs a main()" in said["findings"][0]["text"]


def test_arguments_and_blocks_that_did_not_run(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(
        HEAD + "__global__ void k(int* a) { for (int i = 0; i < 2000; ++i) a[blockIdx.x] += 1; }\n"
        "__global__ void other() {}\n"
        "int main(int count, char** words) { int* a; cudaMalloc(&a, 4096); cudaMemset(a, 0, 4096);"
        " k<<<atoi(words[1]), 1>>>(a); }\n"
    )
    said = judge([file], ["1000"], blocks=8)
    assert said["verdict"] == "ok" and said["ran"] == ["k"]
    assert (
        any("blocks were not watched" in why for why in said["not_run"])
        and "other: did not run" in said["not_run"]
    )


def test_blocks_that_are_not_watched_run(tmp_path):
    """The second kernel's indices are right only if all blocks of the first ran; its blocks wait for each other."""
    file = tmp_path / "k.cu"
    file.write_text(
        HEAD
        + """
__global__ void fill(int* at) { for (int i = 0; i < 2000; ++i) at[blockIdx.x] += i ? 0 : blockIdx.x + 1; }
__global__ void use(const int* at, int* out, int* turn) {
  while (atomicAdd(turn, 0) < blockIdx.x) {}
  __threadfence();
  out[at[blockIdx.x]] = out[at[blockIdx.x] - 1] + 1;
  __threadfence();
  atomicAdd(turn, 1);
}
int main() {
  int *at, *out, last;
  cudaMalloc(&at, 800); cudaMemset(at, 0, 800); cudaMalloc(&out, 808); cudaMemset(out, 0, 808);
  fill<<<200, 1>>>(at);
  use<<<200, 1>>>(at, out, out + 201);
  cudaMemcpy(&last, out + 200, 4, cudaMemcpyDeviceToHost);
  printf("%d\\n", last);
  return last != 200;
}
"""
    )
    said = judge([file], blocks=8)
    assert said["verdict"] == "ok" and said["output"] == "200\n", said


def test_a_launch_that_is_refused(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(HEAD + "__global__ void k() {}\nint main() { k<<<1, 2048>>>(); }\n")
    said = judge([file])
    assert said["verdict"] == "launch" and "2048 threads" in said["findings"][0]["text"]
    assert any("k: a launch was refused" in why and "2048 threads" in why for why in said["not_run"])
    file.write_text(file.read_text().replace("(); }\n", "(); return cudaGetLastError() == cudaSuccess; }\n"))
    assert judge([file])["verdict"] == "incomplete"  # the program has asked, and nothing ran
    file.write_text(file.read_text().replace("main() {", "main() { k<<<1, 32>>>();"))
    assert judge([file])["verdict"] == "ok"


def test_signed_overflow_wraps_as_on_a_gpu(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(
        HEAD
        + "__global__ void k(int* a) { a[threadIdx.x] = (a[threadIdx.x] + 7919) * 1103515245; }"
        + MAIN.format(launch="k<<<1, 64>>>(a);")
    )
    assert judge([file])["verdict"] == "ok"


def test_resident(monkeypatch, capsys):
    text = (FIXTURES / "judge" / "missing_atomic.cu").read_text()
    lines = [json.dumps({"id": 7, "text": text}), "", "{", json.dumps({"files": []})]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines)))
    assert command.main(["--resident"]) == 0
    first, second, third = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["id"], first["verdict"]) == (7, "race") and second["status"] == third["status"] == 2


def test_no_torch():
    code = "import cuffi.judge, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.stdout.strip() == b"False", done.stderr

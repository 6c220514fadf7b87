"""python -m cuffi.run: a CUDA program on the processor."""

import errno

import pytest

from cuffi import run
from cuffi.judge import judge


def test_a_program_in_two_files(tmp_path, capfd):
    (tmp_path / "twice.cu").write_text(
        "__global__ void twice_kernel(int* x) { x[threadIdx.x] *= 2; }\n"
        "void twice(int* x, int n) { twice_kernel<<<1, n>>>(x); }\n"
    )
    (tmp_path / "main.cu").write_text(
        "#include <cuda_profiler_api.h>\nvoid twice(int* x, int n);\n"
        "int main(int count, char** words) {\n  int* x;\n  cudaMallocManaged(&x, 12);\n"
        "  for (int i = 0; i < 3; ++i) x[i] = atoi(words[1]) + i;\n  twice(x, 3);\n  cudaDeviceSynchronize();\n"
        '  printf("%d %d %d\\n", x[0], x[1], x[2]);\n  return count;\n}\n'
    )
    assert run.main([str(tmp_path / "main.cu"), str(tmp_path / "twice.cu"), "--", "5"]) == 2
    assert capfd.readouterr() == ("10 12 14\n", "")


@pytest.mark.parametrize(
    ("head", "said"),
    [("int argc, char** argv", "ARGUMENTS"), ("int argc, const char *argv[]", "ARGUMENTS"), ("", "")],
)
def test_a_program_that_wants_arguments(tmp_path, capfd, head, said):
    """It ends with a status, and got none: the line says where they belong."""
    (tmp_path / "main.cu").write_text(f"int main({head}) {{ return 3; }}\n")
    assert run.main([str(tmp_path / "main.cu")]) == 3
    line = "main.cu ended with status 3. Arguments of its main() go behind --: cuffi run main.cu -- ARGUMENTS"
    assert capfd.readouterr().err == (f"cuffi run: {line}\n" if said else "")


def test_what_programs_ask_a_device_for(tmp_path, capfd):
    """Flags and limits, a callback, and a tile that forgets its block."""
    (tmp_path / "main.cu").write_text(
        "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
        "__global__ void k(int* x) {\n"
        "  cg::thread_block_tile<4> tile = cg::tiled_partition<4>(cg::this_thread_block());\n"
        "  x[threadIdx.x] = tile.shfl(int(threadIdx.x), 1);\n}\n"
        "void CUDART_CB done(cudaStream_t, cudaError_t, void* data) { *static_cast<int*>(data) += 1; }\n"
        "int main() {\n  int x[8], calls = 0;\n  cudaSetDeviceFlags(cudaDeviceBlockingSync | cudaDeviceMapHost);\n"
        "  cudaHostRegister(x, sizeof x, cudaHostRegisterMapped);\n"
        "  cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1 << 30);\n  k<<<1, 8>>>(x);\n"
        "  cudaStreamAddCallback(0, done, &calls, 0);\n  cudaDeviceSynchronize();\n"
        "  const bool refused = cudaDeviceSetLimit(cudaLimitStackSize, 1 << 20) != cudaSuccess;\n"
        '  printf("%d %d %d %d\\n", x[0], x[7], calls, refused);\n'
        "}\n"
    )
    assert run.main([str(tmp_path / "main.cu")]) == 0
    assert capfd.readouterr().out == "1 5 1 1\n"


def test_a_file_in_c(tmp_path, capfd):
    """As nvcc does: what C allows is allowed, such as a function that ends without its value."""
    (tmp_path / "both.h").write_text(
        '#ifdef __cplusplus\nextern "C" {\n#endif\nint filled(int* x, int n);\n'
        "#ifdef __cplusplus\n}\n#endif\n"
    )
    (tmp_path / "host.c").write_text(
        '#include "both.h"\n#include <stdlib.h>\n'
        "int filled(x, n) int* x; int n;\n"
        "{ int *class = malloc(n * sizeof *class); for (int i = 0; i < n; ++i) x[i] = class[i] = i; free(class); }\n"
    )
    (tmp_path / "main.cu").write_text(
        '#include <stdio.h>\n#include "both.h"\n'
        "__global__ void k(int* x) { x[threadIdx.x] += 3; }\n"
        "int main() {\n  int x[4], *d;\n  filled(x, 4);\n  cudaMalloc(&d, sizeof x);\n"
        "  cudaMemcpy(d, x, sizeof x, cudaMemcpyHostToDevice);\n  k<<<1, 4>>>(d);\n"
        "  cudaMemcpy(x, d, sizeof x, cudaMemcpyDeviceToHost);\n"
        '  printf("%d %d\\n", x[0], x[3]);\n}\n'
    )
    files = [tmp_path / "host.c", tmp_path / "main.cu"]
    assert run.main([*map(str, files), "-std=c++20"]) == 0
    assert capfd.readouterr().out == "3 6\n"
    assert judge(files)["verdict"] == "ok"


def test_what_cannot_run(tmp_path, capsys):
    file = tmp_path / "k.cu"
    file.write_text("__global__ void k() {}\n")
    assert run.main([str(file)]) == 3 and "no main()" in capsys.readouterr().err
    assert run.main([]) == 2 and run.main(["--help"]) == 0


def test_the_options_of_its_makefile(tmp_path, capfd):
    """C++20, OpenMP, a macro, a folder of headers; a GPU's architecture changes nothing."""
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "twice.h").write_text("#define TWICE 2\n")
    main = tmp_path / "main.cu"
    main.write_text(
        "#include <concepts>\n#include <omp.h>\n#include <twice.h>\n"
        "template <std::integral T> __global__ void add(T* x) { x[threadIdx.x] += N * TWICE; }\n"
        "int main() {\n  int *x, threads = 0;\n  cudaMallocManaged(&x, 8);\n  x[0] = x[1] = 1;\n"
        "  add<<<1, 2>>>(x);\n  cudaDeviceSynchronize();\n"
        "  #pragma omp parallel num_threads(3) reduction(+ : threads)\n  threads += 1;\n"
        '  printf("%d %d\\n", x[0] + x[1], threads);\n}\n'
    )
    options = ["-std=c++20", "-Xcompiler", "-fopenmp", "-DN=5", f"-I{tmp_path / 'inc'}", "-arch=sm_80", "-O3"]
    assert run.main([*options, str(main)]) == 0
    assert capfd.readouterr().out == "22 3\n"
    assert run.main([str(main), "--fast-please"]) == 2
    assert "--fast-please: no option that is known" in capfd.readouterr().err


def test_a_macro_that_writes_to_streams(tmp_path, capfd):
    """Device code may use a macro, so its shifts are rewritten; std::endl and std::ws have no type of their own."""
    main = tmp_path / "main.cu"
    main.write_text(
        "#include <iostream>\n#include <sstream>\n"
        "#define SAY(x) { std::ostringstream o; o << 1 << std::endl << std::hex << 255 << std::ends << x; \\\n"
        '  std::istringstream in("  7"); int n; in >> std::ws >> n; \\\n'
        "  std::cout << o.str().substr(2, 2) << n << std::endl; }\n"
        "__global__ void k(int* x) { *x = 1 << x[0]; }\n"
        "int main() {\n  int* x;\n  cudaMallocManaged(&x, 4);\n  *x = 40;\n  k<<<1, 1>>>(x);\n"
        "  cudaDeviceSynchronize();\n  SAY(*x);\n  std::cout << *x;\n}\n"
    )
    assert run.main([str(main)]) == 0
    assert capfd.readouterr().out == "ff7\n0"


def test_a_full_disk(tmp_path, monkeypatch, capfd):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run, "program", full)
    (tmp_path / "main.cu").write_text("int main() {}\n")
    assert run.main([str(tmp_path / "main.cu")]) == 3
    said = capfd.readouterr().err
    assert said.endswith(": No space left on device. TMPDIR=/a/folder/with/room\n") and said.count("\n") == 1

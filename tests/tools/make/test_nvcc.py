"""The GPUs for which nvcc compiles."""

import os
import re
import shutil

import pytest
from support.typed import not_none
from support.workshop import ROOT, WITH_KERNEL, make

from cuffi import load_inline


def nvcc_in(folder):
    """A fake nvcc."""
    folder.mkdir(parents=True)
    nvcc = folder / "nvcc"
    nvcc.write_text("#!/bin/sh\n")
    nvcc.chmod(0o755)
    return nvcc


def test_folders_of_the_cuda_toolkit(workshop, tmp_path):
    """Debian and Ubuntu put headers and libraries into the system's folders. Then no option names a folder."""
    built = shutil.ignore_patterns("*.abi3.so", "_*.json", "_caffe.desc")
    shutil.copytree(ROOT / "cuffi/caffe_layers/layers/normalize", workshop.folder / "normalize", ignore=built)
    beside, alone = nvcc_in(tmp_path / "beside" / "bin"), nvcc_in(tmp_path / "alone" / "bin")
    for file in ("lib64/libcudart_static.a", "include/cuda_runtime.h"):
        (tmp_path / "beside" / file).parent.mkdir()
        (tmp_path / "beside" / file).touch()
    named = workshop.build("-n", f"NVCC={beside}", "ARCH=sm_90", "BACKENDS=cuda", "libraries").split()
    assert f"-L{beside.parent}/../lib64" in named and "-lcudart_static" in named
    assert named[named.index("-isystem") + 1] == f"{beside.parent}/../include"
    unnamed = workshop.build("-n", f"NVCC={alone}", "ARCH=sm_90", "BACKENDS=cuda", "libraries").split()
    assert "-lcudart_static" in unnamed
    assert not {"-L", "-isystem"} & set(unnamed)


@pytest.mark.parametrize(("cxx", "own"), [("ccache g++", "g++"), ("/usr/bin/ccache g++ -m64", "g++ -m64")])
def test_nvcc_runs_the_compiler_without_its_launcher(workshop, tmp_path, monkeypatch, cxx, own):
    (tmp_path / "ccache").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    cxx = cxx.replace("/usr/bin", str(tmp_path))
    workshop.layer("one")
    plan = workshop.build("-n", "NVCC=/bin/true", "BACKENDS=cuda", f"CXX={cxx}", "libraries")
    assert f"-ccbin {own} " in plan and f"-ccbin {cxx.split()[0]}" not in plan


def test_native_without_a_gpu(workshop, tmp_path):
    """nvcc would only warn, in a log."""
    workshop.layer("one")
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(
        "#!/bin/sh\necho \"nvcc warning : Cannot find valid GPU for '-arch=native', default arch is used\" >&2\n"
    )
    nvcc.chmod(0o755)
    said = workshop.make(f"NVCC={nvcc}", "ARCH=native", "libraries")
    assert said.returncode and "ARCH=native: nvcc finds no GPU here" in said.output
    assert not re.search(r"^  [A-Z]+ +\S", said.output, re.M)  # nothing was compiled
    assert "NVCC" in workshop.build("-n", f"NVCC={nvcc}", "ARCH=sm_90", "libraries")
    workshop.build("-n", f"NVCC={nvcc}", "ARCH=native", "BACKENDS=host", "libraries")


@pytest.mark.parametrize("arch", ["native", "sm_70 sm_90"])
def test_a_gpu_that_nvcc_does_not_know(workshop, tmp_path, arch):
    """nvcc 11.5 knows neither sm_90 nor native."""
    workshop.layer("one")
    nvcc = tmp_path / "nvcc"
    nvcc.write_text('#!/bin/sh\ncase "$1" in *native|*sm_90) exit 1;; esac\n')
    nvcc.chmod(0o755)
    said = workshop.make(f"NVCC={nvcc}", f"ARCH={arch}", "libraries")
    assert said.returncode and f"ARCH={arch.split()[-1]}: this nvcc does not know it" in said.output
    assert not re.search(r"^  [A-Z]+ +\S", said.output, re.M)  # nothing was compiled


def test_a_kernel_that_asks_for_the_architecture_is_compiled_for_each(workshop):
    one = workshop.layer("one")
    (one / "beside.cuh").write_text("#if __CUDA_ARCH__ >= 900\n#endif\n")
    plan = workshop.build("-n", "NVCC=/bin/true", "ARCH=sm_80 sm_90", "BACKENDS=cuda", "libraries")
    assert "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90" in " ".join(plan.split())
    # nvcc's front divides GPUs there anyway.
    (one / "beside.cuh").write_text("#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800\n#endif\n")
    plan = workshop.build("-n", "NVCC=/bin/true", "ARCH=sm_75 sm_80 sm_90", "BACKENDS=cuda", "libraries")
    assert "code=[sm_75]" in plan and "code=[sm_80,sm_90,compute_80]" in plan


def test_kernels_are_optimised(tmp_path):
    flags = make("-n", "-p", "NVCC=/bin/true", f"BUILD={tmp_path}", "libraries").stdout
    assert re.search(r"^host_FLAGS = .* -O[23] ", flags, re.M) and re.search(
        r"^cuda_NATIVE = .* -O[23] ", flags, re.M
    )
    assert re.search(r"^cuda_native = .*\$\(cuda_NATIVE\).*\$\(cuda_FRONTS\)", flags, re.M)


def test_no_static_library_of_cuda_is_linked_but_its_runtime(tmp_path):
    flags = make("-n", "-p", "NVCC=/bin/true", f"BUILD={tmp_path}", "libraries").stdout
    linked = not_none(re.search(r"^cuda_LINK := (.*)$", flags, re.M))[1]
    assert set(re.findall(r"-l(\w+)", linked)) == {"cudart_static", "dl", "rt"} and ".a" not in linked


def test_a_build_needs_no_gpu(workshop, nvcc):
    """First without nvcc, then with it, and never a GPU to be seen."""
    workshop.layer("one", cu=WITH_KERNEL.format(name="one", value=1))
    workshop.build()
    done = workshop.make(f"NVCC={nvcc}", "ARCH=sm_80", "libraries", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.output
    assert (workshop.folder / "one" / "_cuda.abi3.so").exists()


def test_a_kernel_with_an_array_of_cpp(nvcc, cache, monkeypatch):
    monkeypatch.setenv("NVCC", nvcc)
    text = "#include <array>\n__global__ void k(int* y) { std::array<int, 2> a{3, 4}; y[0] = a[1]; }\n"
    assert load_inline("arrays", text, arch="sm_80", backends="cuda").layer.backends() == ["cuda"]

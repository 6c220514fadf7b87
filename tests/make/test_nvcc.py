"""For which GPUs nvcc compiles."""

import re

import pytest

FRONTS = {
    "sm_90": "-gencode 'arch=compute_90,code=[sm_90,compute_90]'",
    "sm_80 sm_90": "-gencode 'arch=compute_80,code=[sm_80,sm_90,compute_80]'",
    "sm_75 sm_90": "-gencode 'arch=compute_75,code=[sm_75]' -gencode 'arch=compute_90,code=[sm_90,compute_90]'",
    "sm_70 sm_75": "-gencode 'arch=compute_70,code=[sm_70,sm_75,compute_70]'",
    "native": "-arch=native",
}


@pytest.mark.parametrize("arch", FRONTS)
def test_fronts_of_nvcc(workshop, arch):
    """From sm_80 on, half types have instructions of their own. The second front begins there."""
    workshop.layer("one")
    plan = " ".join(
        workshop.build("-n", "NVCC=/bin/true", f"ARCH={arch}", "BACKENDS=cuda", "libraries").split()
    )
    assert f"{FRONTS[arch]} -MMD" in plan


def test_native_without_a_gpu(workshop, tmp_path):
    """nvcc would only warn, in a log that nobody reads."""
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


def test_a_kernel_that_asks_for_the_architecture_is_compiled_for_each(workshop):
    one = workshop.layer("one")
    (one / "beside.cuh").write_text("#if __CUDA_ARCH__ >= 900\n#endif\n")
    plan = workshop.build("-n", "NVCC=/bin/true", "ARCH=sm_80 sm_90", "BACKENDS=cuda", "libraries")
    assert "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90" in " ".join(plan.split())
    # nvcc's front divides GPUs there anyway.
    (one / "beside.cuh").write_text("#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800\n#endif\n")
    plan = workshop.build("-n", "NVCC=/bin/true", "ARCH=sm_75 sm_80 sm_90", "BACKENDS=cuda", "libraries")
    assert "code=[sm_75]" in plan and "code=[sm_80,sm_90,compute_80]" in plan

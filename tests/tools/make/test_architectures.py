"""ARCH as options of nvcc."""

import platform

import pytest

from tools.make.architectures import options

OLD_AND_NEW = "-gencode 'arch=compute_75,code=[sm_75]' -gencode 'arch=compute_90,code=[sm_90,compute_90]'"


@pytest.mark.parametrize(
    ("arch", "fronts", "front"),
    [
        ("sm_90", "-gencode 'arch=compute_90,code=[sm_90,compute_90]'", None),
        ("sm_90a", "-gencode 'arch=compute_90a,code=[sm_90a,compute_90a]'", None),
        ("sm_90 sm_80", "-gencode 'arch=compute_80,code=[sm_80,sm_90,compute_80]'", None),
        ("sm_120 sm_90", "-gencode 'arch=compute_90,code=[sm_90,sm_120,compute_90]'", None),
        ("sm_70 sm_75", "-gencode 'arch=compute_70,code=[sm_70,sm_75,compute_70]'", None),
        ("sm_75 sm_90", OLD_AND_NEW, "-gencode 'arch=compute_75,code=[sm_75,sm_90,compute_75]'"),
        ("native", "-arch=native", None),
    ],
)
def test_fronts(arch, fronts, front):
    """From sm_80 on, half types have instructions of their own, so a native layer's second front begins there."""
    made = options("no nvcc is asked", arch)
    assert made["cuda_FRONTS"] == fronts and made["cuda_FRONT"] == (front or fronts)


def test_each():
    assert options("", "sm_80 sm_90")["cuda_EACH"] == (
        "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 "
        "-gencode arch=compute_90,code=compute_90"
    )
    assert options("", "native")["cuda_EACH"] == "-arch=native"


def nvcc_that_knows(folder, *numbers) -> str:
    nvcc = folder / "nvcc"
    nvcc.write_text("#!/bin/sh\nprintf 'sm_%s\\n' " + " ".join(map(str, numbers)) + "\n")
    nvcc.chmod(0o755)
    return str(nvcc)


def test_all_of_an_old_nvcc(tmp_path):
    """nvcc 11 knows sm_35, on which torch no longer runs."""
    nvcc = nvcc_that_knows(tmp_path, 35, 37, 50, 52, 60, 70, 75, 80, 90)
    for arch, old in (("all-major", "sm_50,sm_60,sm_70"), ("all", "sm_50,sm_52,sm_60,sm_70,sm_75")):
        assert options(nvcc, arch)["cuda_FRONTS"] == (
            f"-gencode 'arch=compute_50,code=[{old}]' -gencode 'arch=compute_80,code=[sm_80,sm_90,compute_80]'"
        )


@pytest.mark.parametrize(("machine", "more"), [("x86_64", ""), ("aarch64", "sm_110,")])
def test_all_of_a_new_nvcc(tmp_path, monkeypatch, machine, more):
    """The oldest GPU counts as a major one. sm_110 is only in systems with ARM processors."""
    monkeypatch.setattr(platform, "machine", lambda: machine)
    nvcc = nvcc_that_knows(tmp_path, 75, 80, 86, 90, 100, 103, 110, 120, 121)
    made = options(nvcc, "all-major")
    codes = f"sm_80,sm_90,sm_100,{more}sm_120"
    assert made["cuda_FRONTS"] == (
        f"-gencode 'arch=compute_75,code=[sm_75]' -gencode 'arch=compute_80,code=[{codes},compute_80]'"
    )
    assert made["cuda_FRONT"] == f"-gencode 'arch=compute_75,code=[sm_75,{codes},compute_75]'"

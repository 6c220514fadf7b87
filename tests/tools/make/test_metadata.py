"""The file beside each library describes it correctly."""

import hashlib
import json
import platform
import re
import struct
import subprocess

import pytest
from conftest import ROOT
from support.compiler import preprocessed
from support.workshop import WITH_KERNEL

from tools.make import metadata


def described(workshop, backend: str = "host") -> dict:
    return json.loads((workshop.folder / "one" / f"_{backend}.json").read_text())


def test_a_host_library(workshop):
    one = workshop.layer("one")
    workshop.build("HOST_ARCH=x86-64-v2", "libraries")
    said = described(workshop)
    assert said["digest"] == hashlib.sha256((one / "_host.abi3.so").read_bytes()).hexdigest()
    assert (said["layer"], said["backend"], said["architectures"]) == ("one", "host", ["x86-64-v2"])
    (version,) = re.findall(r"\d+\.\d+\.\d+", preprocessed("__VERSION__"))
    assert any(version in compiler for compiler in said["compilers"])
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    assert said["commit"].removesuffix("+changes") == head
    workshop.build("clean")
    assert not (one / "_host.json").exists()


def test_compilers_that_left_their_names():
    left = (
        b"\0GCC: (Debian 12.2.0-14) 12.2.0\0Debian clang version 19.1.4 (1)\0GCC: (Debian 12.2.0-14) 12.2.0\0"
    )
    assert metadata.compilers(left, "") == ["GCC: (Debian 12.2.0-14) 12.2.0", "clang version 19.1.4 (1)"]


def test_all_major_is_what_such_a_machine_can_have(workshop, nvcc):
    workshop.layer("one")
    shown = workshop.build("-n", "ARCH=all-major", f"NVCC={nvcc}", "BACKENDS=cuda", "LAYERS=one", "libraries")
    listed = subprocess.run(
        [nvcc, "--list-gpu-code"], capture_output=True, text=True, check=True
    ).stdout.split()
    listed = [code for code in listed if not code.startswith("sm_3")]  # torch no longer runs on these
    majors = {listed[0], *(code for code in listed if code.endswith("0"))}
    elsewhere = {"sm_110"} if platform.machine() == "x86_64" else set()
    assert set(re.findall(r"\bsm_\d+\b", shown)) == majors - elsewhere


def test_a_gpus_library(workshop, nvcc):
    workshop.layer("one", cu=WITH_KERNEL.format(name="one", value=1))
    workshop.build("ARCH=sm_75 sm_80", f"NVCC={nvcc}", "BACKENDS=cuda", "libraries")
    said = described(workshop, "cuda")
    assert said["architectures"] == ["sm_75", "sm_80", "compute_80"]
    assert any(compiler.startswith("nvcc ") for compiler in said["compilers"])


def entry(kind: int, number: int, length: int) -> bytes:
    head = struct.pack("<HHIQ", kind, 0x101, 64, length).ljust(28, b"\0") + struct.pack("<I", number)
    return head.ljust(64, b"\0") + bytes(length)


@pytest.mark.parametrize("before", [b"", b"\x50\xed\x55\xba"])  # the mark alone may stand anywhere
def test_architectures_of_a_container(before):
    entries = entry(2, 75, 40) + entry(2, 120, 8) + entry(1, 120, 16)
    container = metadata._FATBIN + struct.pack("<HHQ", 1, 16, len(entries)) + entries
    library = bytes(100) + before + bytes(64) + container + bytes(300)
    assert metadata.architectures(library) == ["sm_75", "sm_120", "compute_120"]
    assert metadata.architectures(library[:130]) == []

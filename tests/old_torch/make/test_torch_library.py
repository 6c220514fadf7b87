"""The rules of an extension of torch/extension.h, and its PyInit function."""

import itertools
import json
import os

import pytest

from cuffi.old_torch.make import torch_library
from tools.make.settings import Settings


@pytest.fixture
def job(tmp_path) -> dict:
    return {
        "name": "x", "module": "x", "place": str(tmp_path / "out"), "copies": str(tmp_path), "above": "/of/a/user",
        "sources": [f"{tmp_path}/x.cpp"], "headers": [], "local": [], "kernels": [], "flags": ["-DA"], "objects": [],
        "behind": [],
        "link": [], "with_cuda": True, "service": "layers.old_torch.aten_service", "edge": "0123",
        "include": "/headers", "src": "/source", "declared": "/declared", "cxx": ["-DC"], "cuda": ["-DK"],
        "nvcc": ["-use_fast_math"], "std": "17", "first": [],
    }  # fmt: skip


def text(job: dict, tmp_path, **settings) -> str:
    (tmp_path / "job.json").write_text(json.dumps(job))
    own = {"NVCC": "", "BUILD": str(tmp_path / "build"), "CORE": str(tmp_path / "core")} | settings
    return torch_library.TorchRules(Settings(own), str(tmp_path / "job.json")).written()


def test_the_headers_come_before_the_extensions_own(job, tmp_path):
    made = text(job, tmp_path)
    line = next(line for line in made.splitlines() if "aten_cpp" in line)
    words = "-DC -I/declared -I/headers -DA -std=c++17"
    assert words in line and f"-ffile-prefix-map={tmp_path}=/of/a/user" in line
    assert "$(call aten_runtime,host,-I/headers -std=c++17)" in made


def test_only_nvcc_gets_its_options(job, tmp_path, nvcc):
    job["kernels"] = [{"source": f"{tmp_path}/k.cu", "flags": []}]
    made = text(job, tmp_path, NVCC=nvcc, ARCH="sm_90").splitlines()
    host, cuda = (next(line for line in made if f"aten_kernel,{b}" in line) for b in ("host", "cuda"))
    assert "-DK" in host and "-use_fast_math" not in host
    assert "-DK -use_fast_math" in cuda


def test_files_with_torchs_headers_get_them_precompiled(job, tmp_path, nvcc):
    job["sources"].append(f"{tmp_path}/y.cpp")
    job["kernels"] = [{"source": f"{tmp_path}/k.cu", "flags": []}]
    job["first"] = [f"{tmp_path}/x.cpp", f"{tmp_path}/k.cu"]

    def which(**settings) -> list[str]:
        lines = text(job, tmp_path, NVCC=nvcc, ARCH="sm_90", **settings).splitlines()
        recipes = {a: b for a, b in itertools.pairwise(lines) if "$(call aten_" in b and ".o:" in a}
        found = [rule for rule, recipe in recipes.items() if " -include " in recipe]
        assert all(rule.endswith("/0123/first.h.gch") for rule in found)
        assert sum("first.h.gch" in rule for rule in recipes) == len(found)
        return [os.path.basename(rule.partition(":")[0]) for rule in found]

    assert which() == ["x.cpp.o", "k.cu.o"] and which(BACKENDS="cuda") == []
    assert which(SANITIZE="races", BACKENDS="host") == ["x.cpp.o", "k.cu.o"]
    # What extensions share is made under the lock of all.
    (core,) = [line for line in text(job, tmp_path).splitlines() if line.startswith("core: ")]
    shared = [os.path.basename(file) for file in core.split()[1:]]
    assert sorted(shared) == ["aten_python.o", "first.h.gch", "host_launch.o"]


def test_the_module_says_what_it_is(job):
    source = torch_library.source_of(job, "host")
    assert '{"x", "layers.old_torch.aten_service", "0123", false, aten_fill, aten_own_init}' in source
    assert "void* PyInit_x() { return aten_make_module(); }" in source
    # The processor is a GPU only for a library with kernels, and only on the host.
    job["kernels"] = [{"source": "k.cu", "flags": []}]
    assert "true, aten_fill, aten_own_init}" in torch_library.source_of(job, "host")
    assert "false, aten_fill, aten_own_init}" in torch_library.source_of(job, "cuda")

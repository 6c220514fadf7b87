"""The built library as a file: what it needs, what loads it, and the error where it does not fit."""

import os
import platform
import re
import shutil
import subprocess
import sys

import pytest
from support.compiler import WORDS
from support.points import FOLDERS, LAYERS, LAYERS_DIR
from support.workshop import TINY

import build_ffi
from cuffi.runtime import CaffeRuntimeError, backends_here
from cuffi.runtime.elf import why_broken
from cuffi.runtime.library import Library, how_to_build

ALLOWED = re.compile(
    r"(libc|libm|libmvec|libstdc\+\+|libgcc_s|libpthread|libdl|librt|ld-linux[\w-]*)\.so\.\d+\Z"
)


@pytest.mark.parametrize("backend", [backend.name for backend in backends_here()])
@pytest.mark.parametrize("layer", LAYERS)
def test_needs_nothing_of_torch_or_of_one_python(layer, backend):
    """Every symbol is in the library itself, in the C library or in the stable ABI, so it loads anywhere."""
    library = FOLDERS[layer] / f"_{backend}.abi3.so"
    if not library.exists():
        pytest.skip(f"{layer} is not built for {backend}")
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    assert needed and all(ALLOWED.match(name) for name in needed), needed
    assert "RUNPATH" not in dynamic and "RPATH" not in dynamic
    listing = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
    undefined = [line.split()[-1] for line in listing.splitlines() if " U " in line]
    assert not [name for name in undefined if re.search(r"torch|c10|at3|THC|cudaLaunch", name)]
    stable = {"_Py_NoneStruct", "_Py_TrueStruct", "_Py_FalseStruct", "_Py_Dealloc"}
    assert not [name for name in undefined if name.startswith("_Py") and name not in stable]
    defined = [line.split()[-1] for line in listing.splitlines() if re.search(r" [TBDRW] ", line)]
    assert [name for name in defined if not name.startswith("_Z")] == [f"PyInit__{backend}"], (
        "exports more than its init function"
    )


@pytest.mark.parametrize(
    "part, said", [(0, "empty"), (0.1, "truncated"), (0.5, "truncated"), (0.999, "truncated")]
)
def test_a_library_of_which_a_part_is_missing(tmp_path, part, said):
    """After a full disk, or an interrupted copy. The loader would end Python by SIGBUS."""
    whole = LAYERS_DIR / "round" / "_host.abi3.so"
    content, torn = whole.read_bytes(), tmp_path / "_host.abi3.so"
    assert why_broken(whole) == ""
    torn.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(CaffeRuntimeError, match=rf"^torn: {torn} is {said}, remove it\. Type `make "):
        Library("torn", "torn", tmp_path, "host", ())
    torn.write_bytes(b"#!/bin/sh\n" * 20)
    assert why_broken(torn) == "is not a library"


def test_a_build_for_the_host_that_failed_by_load(tmp_path):
    """load(backends='host') cannot help there."""
    library = tmp_path / "_host.abi3.so"
    (tmp_path / "complete").touch()
    (tmp_path / "_host.json").write_text('{"failed": "foo.cu:2: error: inline PTX"}')
    why = "foo: its last build for host failed: foo.cu:2: error: inline PTX"
    assert how_to_build("foo", "host", library) == why
    (tmp_path / "_host.json").write_text("[]")
    assert how_to_build("foo", "host", library).startswith(
        "foo: not built for host: load it with backends='host'"
    )


# If these run, a layer's process is over: they stand for those with instructions that a processor lacks.
DEADLY = "#include <stdlib.h>\nstatic const int dead = (abort(), 0);\n"


def test_built_for_another_processor(workshop):
    """The error comes at loading, before an illegal instruction in a kernel or a static initialiser."""
    workshop.layer("one", more_cu=DEADLY)
    workshop.build("HOST_ARCH=knl", "libraries")  # which only Xeon Phi was
    said = workshop.import_and_fill("one")
    wanted = r"CaffeRuntimeError: one: .* cannot run here: .* with avx512\w+, .*: make HOST_ARCH=native"
    assert re.match(wanted, said), said


INITIALISED = """
#include <stdexcept>
#include <stdlib.h>

static const int five = [] {
  if (getenv("FIVE_FAILS")) throw std::runtime_error("not today");
  return 5;
}();
"""


def test_static_initialisers(workshop, monkeypatch):
    """They run before a function of the layer; their exceptions become the toolkit's errors."""
    workshop.layer("one", cu=INITIALISED + TINY.format(name="one", value="five"))
    workshop.build()
    assert workshop.fill("one") == float(workshop.import_and_fill("one")) == 5
    monkeypatch.setenv("FIVE_FAILS", "1")
    said = workshop.import_and_fill("one")
    assert re.match(r"CaffeRuntimeError: one: .* cannot run here: a static init.* failed: not today", said), (
        said
    )


def macros(arch: str) -> set[str]:
    command = [*WORDS, f"-march={arch}", "-dM", "-E", "-x", "c++", os.devnull]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^#define (__[A-Z0-9_]+__) 1$", output, re.M))


# What a compiler uses for intrinsics alone, or what every processor takes as a no-op.
ARCHITECTURES = ("sapphirerapids", "alderlake", "tigerlake", "znver3", "znver4", "bdver2", "knm", "x86-64-v4")
BY_INTRINSICS = """
    AES PCLMUL SHA VAES VPCLMULQDQ ADX RDRND RDSEED RDPID FSGSBASE XSAVE XSAVEC XSAVES XSAVEOPT PRFCHW CLFLUSHOPT CLWB
    CLDEMOTE CLZERO MWAITX ENQCMD UINTR MOVDIRI MOVDIR64B WAITPKG WBNOINVD SERIALIZE TSXLDTRK PTWRITE PKU SGX PCONFIG
    HRESET KL WIDEKL AMX_TILE AMX_INT8 AMX_BF16 AMX_FP16 SHSTK CRC32 LAHF_SAHF LWP PREFETCHWT1 ABM RTM HLE 3dNOW
    CMPCCXADD PREFETCHI RAOINT 3dNOW_A AMXTILE AMXBF16 AMXINT8 INVPCID
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86")
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_all_that_an_architecture_means_is_asked_for(arch):
    """An unchecked feature could be an illegal instruction."""
    try:
        more = macros(arch) - macros("x86-64")
    except subprocess.CalledProcessError:
        pytest.skip(f"this compiler has no {arch}")
    more = {m for m in more if not re.match(r"__(FP_FAST|GCC|GLIBC|FLT|tune)", m)}
    known = {*build_ffi.CPU_FEATURES, *(f"__{name}__" for name in BY_INTRINSICS.split())}
    assert not more - known
    asked = build_ffi.cpu_features(["env", *WORDS], [f"-march={arch}"])
    assert len(asked) > 5 and "avx" in asked


@pytest.mark.skipif(not shutil.which("qemu-x86_64"), reason="needs qemu-user")
@pytest.mark.parametrize(
    "arch, processor, feature",
    [
        ("sapphirerapids", "max", "avx"),
        ("x86-64-v3", "Nehalem", "avx"),
        ("bdver2", "max", "(fma4|xop|tbm|avx)"),
    ],
)
def test_on_an_older_processor(workshop, arch, processor, feature):
    """Emulated: a program that loads the library and calls it gets the message, not SIGILL."""
    workshop.layer("one", more_cu=DEADLY)
    workshop.build(f"HOST_ARCH={arch}", "libraries")
    script = """
import importlib.machinery as machinery, importlib.util as util, sys
loader = machinery.ExtensionFileLoader("_host", sys.argv[1])
module = util.module_from_spec(util.spec_from_loader("_host", loader))
loader.exec_module(module)
print(module.ffi.string(module.lib.caffe_unsupported()).decode())
"""
    library = workshop.folder / "one" / "_host.abi3.so"
    command = ["qemu-x86_64", "-cpu", processor, sys.executable, "-c", script, library]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert re.match(rf"built for a processor with ({feature})\w*, .*HOST_ARCH=native", done.stdout), (
        done.stdout
    )


def test_build_info(kernels):
    library = kernels["loops"].library("host")
    assert library.text(library.lib.caffe_build_info()) == "host native"

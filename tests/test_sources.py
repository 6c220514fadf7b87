"""Words that the sources must not contain, and facts about each layer's files."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import cuffi.elementwise_mult
import cuffi.round
import cuffi.sigmoid
import pytest
from conftest import ROOT

from cuffi.runtime import backends_here

OURS = (cuffi.round, cuffi.sigmoid, cuffi.elementwise_mult)
SOURCES = [
    p
    for folder in ("cuffi", "layers", "src", "include", "tools")
    for p in (ROOT / folder).rglob("*")
    if p.is_file()
]
SOURCES = [p for p in SOURCES if p.suffix in (".py", ".h", ".cuh", ".cu", ".cpp")]
CODE = [p for p in SOURCES if p.suffix != ".py"]


def code_of(path: Path) -> str:
    """A C++ file without its comments and strings."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', " ", path.read_text(), flags=re.S)


def said_in_code(pattern: str) -> list[str]:
    return [f"{p.relative_to(ROOT)}: {m[0]}" for p in CODE for m in re.finditer(pattern, code_of(p))]


def test_nothing_is_printed_in_c():
    said = said_in_code(r"\bf?printf\s*\(|\bstd::c(out|err)\b|\bputs\s*\(")
    # glog's lines where no process takes them; what the race finder found, where nobody names a file for it; a warning
    # of an extension's TORCH_WARN
    reports = (
        "cuffi/caffe_layers/core/logging.cpp",
        "src/host/race_log.h",
        "src/host/judge.h",
        "src/host/host_launch.cpp",
        "cuffi/old_torch/include/extension/aten/types.h",
    )
    assert not [line for line in said if not line.startswith(reports)]


def test_no_library_is_included_that_is_not_linked():
    said = said_in_code(r"#\s*include\s*[<](curand|cublas|cudnn|THC|ATen|torch)[^>]*>")
    # The toolkit's own headers of these names, for extensions of torch.utils.ffi, include each other.
    assert not [
        line
        for line in said
        if not line.startswith(("cuffi/old_torch/include/TH", "cuffi/old_torch/include/ffi/"))
    ]


def test_nothing_ends_the_process():
    said = said_in_code(r"\b_?exit\s*\(|\babort\s*\(|\bassert\s*\(|\bstd::terminate\b")
    # A case of the judge is a process of its own, and what a judged program leaves is said at its end.
    # Nor has a sample of blocks an end of its own.
    assert said == ["src/host/host_sample.h: _exit(", *["src/host/judge.h: _exit("] * 2]


def test_nothing_waits_for_the_gpu():
    # Blobs that a Caffe layer reads on the host must be waited for; nothing else.
    waits = (
        "include/host",
        "cuffi/old_torch/include/",  # where an extension asks for it
        "cuffi/caffe_layers/core/syncedmem.cpp",
        "cuffi/caffe_layers/core/host_services.cpp",
        "cuffi/caffe_layers/core/common.cpp",
    )
    said = said_in_code(r"cuda(Device|Stream)Synchronize\s*\(")
    assert not [line for line in said if not line.startswith(waits)]
    for path in (ROOT / "cuffi" / "runtime").glob("*.py"):
        if path.name == "cases.py":  # compares results, and is on no call's way
            continue
        names = {
            node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)
        }
        assert "synchronize" not in names and "item" not in names


def test_readme_shows_the_kernels_of_the_code():
    readme = ROOT / "README.md"
    if not readme.exists():
        pytest.skip("no README.md yet")
    code = " ".join(" ".join(path.read_text().split()) for path in CODE if path.suffix in (".cu", ".cuh"))
    blocks = re.findall(r"^```(?:cuda|cpp|c\+\+|c)?\n(.*?)^```", readme.read_text(), re.M | re.S)
    for name, kernel in re.findall(r"__global__ void (\w+)(.*?\n}\n)", "".join(blocks), re.S):
        if f"__global__ void {name}(" in code:
            assert f"void {name}" + " ".join(kernel.split()) in code, (
                f"README.md shows another {name} than the code"
            )


def test_counts_have_64_bits():
    """Counts are 64-bit in every declaration."""
    for module in OURS:
        header = module.layer.folder / f"{module.layer.name}.h"
        assert re.findall(r"(\w+) count\b", header.read_text()) and not re.search(
            r"\bint count\b", header.read_text()
        )


def test_a_module_hides_no_builtin():
    exec(
        "import cuffi.round\nassert round(2.6) == 3\nfrom cuffi import round as layer\nassert layer.Round",
        {},
    )


@pytest.mark.parametrize("backend", [backend.name for backend in backends_here()])
def test_a_library_loads_without_torch(backend):
    """The library loads in a Python that has not imported torch, every symbol bound at once."""
    path = cuffi.round.layer.folder / f"_{backend}.abi3.so"
    if not path.exists():
        pytest.skip(f"round is not built for {backend}")
    script = (
        "import sys, ctypes, os; ctypes.CDLL(sys.argv[1], os.RTLD_NOW); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, path], check=True)


def test_libraries_are_built_of_the_sources_that_are_here():
    """No library is older than its layer's sources."""
    for module in OURS:
        sources = [p for p in module.layer.folder.iterdir() if p.suffix in (".cu", ".cuh", ".h")]
        for library in module.layer.folder.glob("_*.abi3.so"):
            stale = [p.name for p in sources if p.stat().st_mtime > library.stat().st_mtime]
            assert not stale, f"{library} is older than {', '.join(stale)}: make"


def test_a_layer_has_the_name_of_its_folder():
    """The name is written nowhere else."""
    for module in OURS:
        assert module.__name__ == f"cuffi.{module.layer.folder.name}" == f"cuffi.{module.layer.name}"
        assert module.layer.backends()

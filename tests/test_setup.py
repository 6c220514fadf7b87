"""pip: the wheel's name and content, and that it works outside of the checkout."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from support import python_with_torch
from support.wheels import NETS, pip

import cuffi

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("setuptools") is None, reason="setuptools is not installed"
)


def python(site: Path, script: str, cwd: Path, with_torch: bool = True) -> str:
    # The suite's LAYERS_DIR would put the checkout's layers before the installed ones.
    environment = os.environ | {"PYTHONPATH": str(site), "NVCC": "", "LAYERS_DIR": ""}
    command = [sys.executable, "-c", script]
    if with_torch:
        done = python_with_torch.run(command, cwd, environment)
    else:
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def names_in(wheel: Path) -> set[str]:
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def metadata_of(wheel: Path) -> Message:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_bytes(archive.read(name))


def test_a_wheel_says_what_is_true_of_it(kernels_wheel):
    assert "-cp310-abi3-linux_" in kernels_wheel.name
    names = names_in(kernels_wheel)
    libraries = {name for name in names if name.endswith(".so")}
    assert libraries == {"cuffi/layers/round/_host.abi3.so", "cuffi/runtime/_call.abi3.so"}
    for wanted in (
        "cuffi/_toolkit/Makefile",
        "cuffi/_toolkit/VERSION",
        "cuffi/_toolkit/include/caffe_cuda_macro.h",
        "cuffi/_toolkit/tools/cuda/to_host.py",
        "cuffi/loading/load.py",
        "cuffi/caffe_layers/layers/normalize/normalize.proto",
        "cuffi/caffe_layers/include/caffe/layers/loss_layer.hpp",
    ):
        assert wanted in names
    assert not [name for name in names if name.endswith((".pyc", ".partial", ".o"))]


def test_two_distributions_never_write_one_file(kernels_wheel, nets_wheel):
    kernels, nets = names_in(kernels_wheel), names_in(nets_wheel)
    assert not kernels & nets
    # Together they have every file of the package.
    here = {f.relative_to(ROOT).as_posix() for f in (ROOT / "cuffi").rglob("*.py")}
    assert not {name for name in here if "/build/" not in name} - kernels - nets


def test_the_kernels_need_the_nets_of_the_same_version(kernels_wheel, nets_wheel):
    """From a checkout they are the checkout's own, so no index is needed."""
    kernels, nets = metadata_of(kernels_wheel), metadata_of(nets_wheel)
    assert kernels["Version"] == nets["Version"] == cuffi.__version__
    assert f"cuffi-nets @ {NETS.as_uri()}" in kernels.get_all("Requires-Dist", [])


def test_one_command_installs_both_from_a_checkout(tmp_path, kernels_wheel):
    """pip resolves what `pip install .` would: of the two, only this checkout's files."""
    report = tmp_path / "report.json"
    done = pip("install", "--dry-run", "--no-build-isolation", "--no-index", "--ignore-installed", "--no-deps",
               "--report", str(report), *metadata_of(kernels_wheel).get_all("Requires-Dist", [])[:1])  # fmt: skip
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(report.read_text())["install"]
    assert found["metadata"]["name"] == "cuffi-nets" and found["download_info"]["url"] == NETS.as_uri()


@pytest.mark.parametrize("stamp", ["9.9.9", None])
def test_another_version_beside_it_is_one_line(site, tmp_path, stamp):
    place = tmp_path / "site"
    shutil.copytree(site, place, ignore=shutil.ignore_patterns("include", "src", "caffe_layers"))
    file = place / "cuffi" / "_toolkit" / "VERSION"
    file.write_text(f"{stamp}\n") if stamp else file.unlink()
    done = subprocess.run(
        [sys.executable, "-c", "import cuffi"], capture_output=True, text=True, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(place), "LAYERS_DIR": ""},
    )  # fmt: skip
    version = cuffi.__version__
    said = f"cuffi-nets {version} is beside cuffi {stamp or 'of an older version'}: pip install --upgrade "
    assert (
        done.stderr.strip().splitlines()[-1]
        == f'ImportError: {said}"cuffi=={version}" "cuffi-nets=={version}"'
    )


def test_half_an_install_is_one_line(site, tmp_path):
    place = tmp_path / "site"
    shutil.copytree(site, place, ignore=shutil.ignore_patterns("include", "src", "caffe_layers"))
    shutil.rmtree(place / "cuffi" / "loading")
    done = subprocess.run(
        [sys.executable, "-c", "from cuffi import load_inline"], capture_output=True, text=True, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(place), "LAYERS_DIR": ""},
    )  # fmt: skip
    assert "load_inline: " in done.stderr.strip().splitlines()[-1]
    assert "pip install --upgrade cuffi cuffi-nets" in done.stderr.strip().splitlines()[-1]


def test_it_works_away_from_the_checkout(site, tmp_path):
    said = python(
        site,
        """
import sys, cuffi
assert "torch" not in sys.modules  # nothing is imported before it is used
import torch
from cuffi.round import Round
assert Round()(torch.tensor([0.2, 0.7])).tolist() == [0, 1]
try:
    Round.__module__ and cuffi.round.layer.library("cuda")
except cuffi.CaffeRuntimeError as error:
    print(error)
""",
        tmp_path,
        with_torch=False,
    )
    assert "round: not built for cuda: there was no compiler for it when cuffi was installed" in said


def test_its_load_inline(site, tmp_path, cache):
    source = 'extern "C" int three(float* top, void* stream) { top[0] = 3; return 0; }'
    script = f"""
import torch, cuffi
top = torch.zeros(1)
cuffi.load_inline("three", {source!r}).three(top)
print(top.item())
"""
    assert python(site, script, tmp_path) == "3.0"


RACY = "__global__ void sum(const int* x, int* total) { *total += x[threadIdx.x]; }\n"


def test_it_judges_away_from_the_checkout(site, tmp_path, cache):
    """A .cu by both commands, and by pytest's plugin."""
    (tmp_path / "sum.cu").write_text(RACY)
    program = 'int main() { sum<<<1, 1>>>(new int[1]{3}, new int[1]{}); puts("ran"); }\n'
    (tmp_path / "main.cu").write_text("#include <cstdio>\n" + RACY + program)
    environment = os.environ | {"PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}
    # Where nobody asks for the judge, its plugin leaves the path alone: `tools` may be a package of yours.
    (tmp_path / "test_path.py").write_text(
        "import sys\n\ndef test_it():\n    assert not [p for p in sys.path if p.endswith('_toolkit')]\n"
        "    assert 'cuffi.judging.plugin' in sys.modules and 'tools' not in sys.modules\n"
    )
    said = []
    for words in (
        ["cuffi.judge", "sum.cu"], ["cuffi", "judge", "sum.cu"], ["cuffi.run", "main.cu"],
        ["pytest", "-p", "no:cacheprovider", "--cuffi-judge", "sum.cu"],
        ["pytest", "-p", "no:cacheprovider", "test_path.py"],
    ):  # fmt: skip
        command = [sys.executable, "-m", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        said.append((done.returncode, done.stdout + done.stderr))
    assert [status for status, _ in said] == [1, 1, 0, 1, 0], said
    assert all("race in kernel sum" in text for _, text in (*said[:2], said[3])) and "ran" in said[2][1], said


def test_its_make_builds_a_folder_that_imports_it(site, tmp_path):
    layer = tmp_path / "mine" / "five"
    layer.mkdir(parents=True)
    (layer / "five.h").write_text("int five(float *top, void *stream);\n")
    (layer / "five.cu").write_text(
        'extern "C" int five(float* top, void* stream) { top[0] = 5; return 0; }\n'
    )
    (layer / "__init__.py").write_text("from cuffi import Layer\n\nlayer = Layer(__name__)\n")
    root = python(site, "from cuffi.commands.main import main; main(['folder'])", tmp_path)
    assert Path(root) == site / "cuffi" / "_toolkit"
    make = [
        "make",
        "-C",
        root,
        f"PYTHON={sys.executable}",
        "NVCC=",
        f"LAYERS_DIR={tmp_path}/mine",
        "libraries",
    ]
    done = subprocess.run(make, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    script = "import torch, mine.five; t = torch.zeros(1); mine.five.layer.five(t); print(t.item())"
    assert python(site, script, tmp_path) == "5.0"
    # The suite, the benchmarks and the style are not installed: make test runs the cases alone.
    for target, said in (
        ("test", "Nothing is built in /nosuch"),
        ("bench", "the benchmarks are in the checkout"),
        ("lint", "the sources are in the checkout"),
    ):
        command = ["make", "-C", root, f"PYTHON={sys.executable}", "LAYERS_DIR=/nosuch", target]
        environment = os.environ | {"PYTHONPATH": str(site)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
        assert done.returncode and said in done.stdout, done.stdout + done.stderr


def test_free_threaded_python_has_no_kernels():
    """It imports the package, and runs nets."""
    script = "import sys; sys.abiflags = 't'; import cuffi; print(cuffi.__version__, flush=True); cuffi.load_inline"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    last = done.stderr.strip().splitlines()[-1]
    assert done.stdout == f"{cuffi.__version__}\n"
    assert "free-threaded Python cannot load libraries of the stable ABI" in last
    assert f"use python{sys.version_info[0]}.{sys.version_info[1]} instead of its t variant" in last


def test_its_build_script_of_torch_utils_ffi(site, tmp_path, cache):
    """`python -m cuffi.ffi build.py`, and the built module in a program."""
    source = "#include <TH/TH.h>\nint six(THFloatTensor *x) { THFloatTensor_fill(x, 6); return 1; }\n"
    (tmp_path / "six.c").write_text(source)
    (tmp_path / "six.h").write_text("int six(THFloatTensor *x);\n")
    build = "create_extension('old.six', 'six.h', ['six.c'], relative_to=__file__).build()\n"
    (tmp_path / "build.py").write_text(f"from torch.utils.ffi import create_extension\n{build}")
    start = "import sys, runpy; sys.argv = ['ffi', 'build.py']; runpy.run_module('cuffi.ffi', run_name='__main__')"
    assert "old.six: built for host" in python(site, start, tmp_path)
    script = "import torch, cuffi.ffi; from old import six; t = torch.zeros(1); six.six(t); print(t.item())"
    assert python(site, script, tmp_path) == "6.0"


@pytest.mark.parametrize("project", ["kernels_wheel", "nets_wheel"])
def test_a_wheel_has_its_licence_its_authors_and_where_to_ask(request, project):
    """The whole text, with the notice of Caffe's authors."""
    wheel = request.getfixturevalue(project)
    metadata, archive = metadata_of(wheel), zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE"))
    assert archive.read(name) == (ROOT / "LICENSE").read_bytes()
    assert (metadata["License-Expression"], metadata["Author"]) == ("BSD-2-Clause", "cuffi developers")
    assert {url.partition(",")[0] for url in metadata.get_all("Project-URL", [])} == {
        "Source",
        "Issues",
        "Changelog",
    }


def test_the_licence_names_what_comes_from_caffe():
    text = (ROOT / "LICENSE").read_text()
    named = re.findall(r"cuffi/[\w/*.]+", text.partition("What comes from Caffe")[2])
    assert len(named) > 5 and all(any(ROOT.glob(path.rstrip("/"))) for path in named), named
    protos = {f.relative_to(ROOT) for f in (ROOT / "cuffi").rglob("*.proto")}
    assert protos <= {f.relative_to(ROOT) for path in named for f in ROOT.glob(path)}


def test_the_checkers_know_the_layers_of_a_wheel(site, tmp_path):
    """from cuffi.round import Round: a finder makes it at run time, and a stub says so."""
    stubs = {f.stem for f in (site / "cuffi").glob("*.pyi")}
    assert {"round", "sigmoid", "correlation"} <= stubs
    ty = shutil.which("ty") or shutil.which("ty", path=str(Path(sys.executable).parent))
    if ty is None:
        pytest.skip("no ty")
    (tmp_path / "user.py").write_text(
        "from cuffi.round import Round, round_ste\nfrom cuffi.sigmoid import sigmoid\nsigmoid(1)\nround_ste(Round)\n"
    )
    command = [
        ty,
        "check",
        "--python",
        sys.prefix,
        "--output-format",
        "concise",
        "--extra-search-path",
        str(site),
    ]
    done = subprocess.run([*command, "user.py"], capture_output=True, text=True, cwd=tmp_path)
    assert re.findall(r"user.py:(\d+):\d+: error\[(\S+)\]", done.stdout) == [
        ("3", "invalid-argument-type"), ("4", "invalid-argument-type")
    ], done.stdout  # fmt: skip

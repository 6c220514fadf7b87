"""cuffi-nets: its wheel, and that nets, dnn, pycaffe, solvers and ONNX run without what builds kernels."""

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT
from support import python_with_torch
from support.wheels import NETS, pip

TRIALS = ROOT / "lab" / "wheel" / "trials"
# In each of these programs an import of what kernels need is an error, and so is one of the checkout.
FORBIDDEN = f"""
import sys
class Forbidden:
    @staticmethod
    def find_spec(name, path=None, target=None):
        top = name.partition(".")[0]
        if top in ("cffi", "_cffi_backend", "grpc_tools", "pycparser", "tree_sitter", "tree_sitter_cuda"):
            raise AssertionError("imported: " + name)
sys.meta_path.insert(0, Forbidden)
assert {str(ROOT)!r} not in sys.path
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The trials' files, and two pictures."""
    made = tmp_path_factory.mktemp("trials") / "a folder"
    shutil.copytree(TRIALS, made)
    (made / "images.txt").write_text("dark.ppm 0\nlight.ppm 1\n")
    for name, value in {"dark": 40, "light": 200}.items():
        (made / f"{name}.ppm").write_bytes(b"P6 4 4 255\n" + bytes([value] * 48))
    return made


@pytest.fixture
def run(nets_site, folder):
    def run(script: str, status: int = 0, with_torch: bool = True, **environment: str) -> str:
        clean = (
            os.environ | {"PYTHONPATH": str(nets_site), "LAYERS_DIR": "", "PATH": "/nowhere"} | environment
        )
        command = [sys.executable, "-c", FORBIDDEN + script]
        if with_torch:
            done = python_with_torch.run(command, folder, clean)
        else:
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=clean, timeout=300)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout.strip() if not status else done.stderr.strip()

    return run


def command(*words: str) -> str:
    return f"from cuffi.commands.main import main; sys.argv[1:] = {words!r}; status = main(); assert not status, status"


def needs_cv2():
    """For a process of its own. Here another test may have put a cv2 of ours into sys.modules."""
    if importlib.machinery.PathFinder.find_spec("cv2") is None:
        pytest.skip("cv2 is not installed")


def test_the_wheel_is_pure_and_small(nets_wheel):
    assert nets_wheel.name.endswith("-py3-none-any.whl") and nets_wheel.stat().st_size <= 1.5e6
    archive = zipfile.ZipFile(nets_wheel)
    names = archive.namelist()
    assert "cuffi/nets/net/_caffe.desc" in names and "cuffi/py.typed" in names
    assert not [n for n in names if n.endswith((".so", ".pyc", ".cu", ".cpp")) or "/layers/" in n]
    (metadata,) = (archive.read(n).decode() for n in names if n.endswith("/METADATA"))
    required = [
        line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra" not in line
    ]
    assert required == ["Requires-Dist: torch>=2.5", "Requires-Dist: numpy", "Requires-Dist: protobuf"]
    assert "Requires-Python: >=3.10" in metadata
    (points,) = (archive.read(n).decode() for n in names if n.endswith("/entry_points.txt"))
    assert "cuffi = cuffi.commands.main:main" in points


def test_the_descriptor_has_stock_caffes_and_the_fork_types_messages(nets_wheel):
    data = zipfile.ZipFile(nets_wheel).read("cuffi/nets/net/_caffe.desc")
    assert b"ConvolutionParameter" in data and b"PriorBoxParameter" in data


def test_an_import_imports_no_torch(run):
    assert run("import cuffi; print('torch' in sys.modules)", with_torch=False) == "False"


def test_nets_and_scripts(run, folder):
    """A net with types of forks, cv2.dnn's importer, pycaffe and a solver file."""
    net = "import runpy; sys.argv[1:] = ['ssd.prototxt', 'ssd.caffemodel']; runpy.run_path('net.py')"
    assert "a box of 0.75" in run(net)
    script = command("caffe", "pycaffe_script.py", "ssd.prototxt", "ssd.caffemodel")
    assert "3 layers" in run(script)
    needs_cv2()
    opencv = command("dnn", "opencv_script.py", "ssd.prototxt", "ssd.caffemodel")
    assert "cuffi.nets.dnn" in run(f"import cv2; del cv2.dnn.readNetFromCaffe; {opencv}")  # as in OpenCV 5
    assert "Loss curve" in run(command("train", "solver.prototxt"))


def test_the_command_shows_a_net(run):
    pytest.importorskip("rich")
    needs_cv2()
    assert "a folder/train.prototxt', phase='TEST')" in run(
        command("net", "train.prototxt", "--phase", "TEST")
    )


def test_a_net_becomes_onnx(run):
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name)
    assert "agrees" in run("""
import torch
from cuffi import caffe_net
net = caffe_net('''input: "x" input_shape { dim: 1 dim: 2 dim: 5 dim: 5 }
layer { name: "c" type: "Convolution" bottom: "x" top: "y" convolution_param { num_output: 3 kernel_size: 3
  weight_filler { type: "xavier" } } }''')
certificate = net.to_onnx("x.onnx")
print("agrees" if certificate.agrees else certificate)
""")


@pytest.mark.parametrize(
    "script",
    [
        "from cuffi import load_inline",
        "import cuffi; cuffi.load",
        "import cuffi.ffi",
        "import cuffi; cuffi.runtime",
        "from cuffi.round import Round",
        "import torch, cuffi.caffe_layers.call",
    ],
)
def test_what_needs_kernels_is_one_line(run, script):
    last = run(script, status=1).splitlines()[-1]
    assert last.startswith(("ImportError: ", "ModuleNotFoundError: "))
    assert "kernels. They are not installed: pip install cuffi==" in last


def test_on_another_system_there_are_no_kernels(run):
    last = run("import cuffi; sys.platform = 'darwin'; cuffi.load_inline", status=1).splitlines()[-1]
    assert "They run on Linux only, this is darwin. Nets, dnn and pycaffe need none of them" in last


def test_kernels_in_another_folder_are_named(run, tmp_path):
    (tmp_path / "cuffi").mkdir()
    (tmp_path / "cuffi" / "edge.py").touch()
    last = run(f"import cuffi; sys.path.append({str(tmp_path)!r}); cuffi.load_inline", status=1).splitlines()[
        -1
    ]
    assert f"cuffi is in {tmp_path}/cuffi, and cuffi-nets in " in last


def test_a_missing_descriptor_is_named(nets_site, folder, tmp_path):
    place = tmp_path / "site"
    shutil.copytree(nets_site, place)
    (place / "cuffi" / "nets" / "net" / "_caffe.desc").unlink()
    done = subprocess.run(
        [sys.executable, "-c", "from cuffi import caffe_net; caffe_net('ssd.prototxt')"],
        capture_output=True, text=True, cwd=folder, env=os.environ | {"PYTHONPATH": str(place)},
    )  # fmt: skip
    last = done.stderr.strip().splitlines()[-1]
    assert "_caffe.desc" in last and "install" in last


def test_an_sdist_builds_the_same_wheel_from_an_empty_folder(nets_wheel, tmp_path):
    """It has the descriptor, so protoc is not needed."""
    if (
        importlib.util.find_spec("build.__main__") is None
    ):  # build/ of the checkout is a package, too, to Python
        pytest.skip("the package build is not installed")
    script = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "-o", str(tmp_path), str(NETS)]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = tmp_path.glob("cuffi_nets-*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path / "empty", filter="data")
    (project,) = (tmp_path / "empty").iterdir()
    done = pip(
        "wheel", str(project), "--no-deps", "--no-build-isolation", "-w", str(tmp_path / "made"), cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = (tmp_path / "made").glob("*.whl")
    files = [
        {n: z.read(n) for n in z.namelist() if ".dist-info/" not in n}
        for z in map(zipfile.ZipFile, (made, nets_wheel))
    ]
    assert files[0] == files[1]


def test_a_build_leaves_nothing_in_the_checkout(nets_wheel):
    left = [f for f in (NETS / "build").glob("*")] if (NETS / "build").exists() else []
    assert not left and not (NETS / "src").exists() and not list(Path(NETS).glob("*.egg-info"))

"""Try a wheel without a compiler: layers, nets, OpenCV's and pycaffe's scripts, a solver file.

    python -m lab.wheel.smoke dist             both wheels of a folder, in a new environment, with their requirements
    python -m lab.wheel.smoke --here dist      over the packages of this Python, which is quick
    python -m lab.wheel.smoke --nets dist      cuffi-nets alone: what needs kernels must say so in its last line

OpenCV 5 is installed, too. The programs run with a PATH that has only Python. A program that needs a compiler must say
so in its last line.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

TRIALS = Path(__file__).parent / "trials"
OPENCV = "opencv-python-headless==5.*"
INLINE = "from cuffi import load_inline; load_inline('twice', '__global__ void twice(float* x) { *x *= 2; }')"
EXTENSION = """
from torch.utils.ffi import create_extension
create_extension("_ext.a", headers=[], sources=["a.c"]).build()
"""
# What runs: its arguments, and the words that its last line has. Those of the second table need a compiler.
RUN = {
    "each layer": (["each_layer.py"], "ROW|"),
    "a net": (["net.py", "ssd.prototxt", "ssd.caffemodel"], "a box of 0.75"),
    "python -m cuffi.dnn": (
        ["-m", "cuffi.dnn", "opencv_script.py", "ssd.prototxt", "ssd.caffemodel"],
        "OpenCV 5",
    ),
    "python -m cuffi.caffe": (
        ["-m", "cuffi.caffe", "pycaffe_script.py", "ssd.prototxt", "ssd.caffemodel"],
        "3 layers",
    ),
    "python -m cuffi.train": (["-m", "cuffi.train", "solver.prototxt"], "Loss curve"),
}
REFUSED = {
    "load_inline": ["-c", INLINE],
    "python -m cuffi.ffi": ["-m", "cuffi.ffi", "build.py"],
    "make port": ["-m", "cuffi.caffe_layers.port", "--caffe=.", "--layers-dir=mine", "--", "Foo"],
}
NEEDS = "C++ compiler"
# Without kernels: these cannot run, and say what is missing.
NO_KERNELS = "kernels"


def environment(folder: Path, wheels: list[Path], here: bool) -> Path:
    """A virtual environment with the wheels and OpenCV 5; its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    only = ["--no-deps"] if here else []
    if here:
        # By its name: Debian's own Python has another scheme outside of an environment.
        scheme = "nt" if os.name == "nt" else "posix_prefix"
        found = sysconfig.get_path("purelib", scheme, vars={"base": str(folder), "platbase": str(folder)})
        Path(found, "here.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", *only]
    # CI's constraints hold another OpenCV.
    clean = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
    subprocess.run([*pip, *map(str, wheels), OPENCV], check=True, env=clean)
    return python


def run(python: Path, arguments: list[str], folder: Path) -> subprocess.CompletedProcess:
    """A program of Python in the folder. PATH has the virtual environment's programs only."""
    own = {
        name: os.environ[name] for name in ("SYSTEMROOT", "TEMP") if name in os.environ
    }  # Windows needs them
    environment = own | {"PATH": str(python.parent), "HOME": str(python.parents[1])}
    return subprocess.run([python, *arguments], cwd=folder, env=environment, capture_output=True, text=True)


def wrong(done: subprocess.CompletedProcess, words: str, refused: bool) -> str:
    """Why this is not what was expected; "" if it is."""
    text = (done.stdout + done.stderr if refused else done.stdout).strip().splitlines() or [""]
    if bool(done.returncode) != refused or words not in text[-1]:
        return f"status {done.returncode}; {(done.stdout + done.stderr).strip()}"
    return ""


def wheels_in(folder: Path, nets: bool) -> list[Path]:
    """The wheels of a folder: cuffi-nets, and cuffi if it is wanted."""
    patterns = ["cuffi_nets-*.whl", *([] if nets else ["cuffi-*.whl"])]
    found = [sorted(folder.resolve().glob(pattern)) for pattern in patterns]
    if not all(found):
        raise SystemExit(f"{folder}: expected {' and '.join(patterns)}: pip wheel --no-deps -w {folder} ...")
    return [wheels[-1] for wheels in found]


def programs(nets: bool) -> dict[str, tuple[list[str], str]]:
    """What is run, with the words of its last line."""
    if not nets:
        return RUN | {name: (command, NEEDS) for name, command in REFUSED.items()}
    pure = {name: found for name, found in RUN.items() if name != "each layer"}
    return pure | {"load_inline": (REFUSED["load_inline"], NO_KERNELS)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="has the wheels")
    parser.add_argument("--nets", action="store_true", help="cuffi-nets alone")
    parser.add_argument("--here", action="store_true", help="over the packages of this Python")
    given = parser.parse_args(arguments)
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "work")
        shutil.copytree(TRIALS, folder)
        (folder / "build.py").write_text(EXTENSION)
        (folder / "a.c").write_text("")
        (folder / "images.txt").write_text("dark.ppm 0\nlight.ppm 1\n")
        for name, value in {"dark": 40, "light": 200}.items():
            (folder / f"{name}.ppm").write_bytes(b"P6 4 4 255\n" + bytes([value] * 48))
        python = environment(Path(place, "venv"), wheels_in(given.folder, given.nets), given.here)
        toolkit = Path(
            run(python, ["-c", "import cuffi; print(cuffi.__path__[0])"], folder).stdout.strip(), "_toolkit"
        )
        expected = programs(given.nets)
        for name, (command, words) in expected.items():
            began = time.monotonic()
            done = run(python, command, toolkit if name == "make port" else folder)
            why = wrong(done, words, name in REFUSED)
            failed += bool(why)
            print(
                f"{'FAIL' if why else 'ok':5} {name}, {time.monotonic() - began:.1f} s{': ' + why if why else ''}"
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

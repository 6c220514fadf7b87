"""The wheels of both distributions, built once for the suite: cuffi with one layer, for the host."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .workshop import made_once

ROOT = Path(__file__).resolve().parents[2]
NETS = ROOT / "packaging" / "nets"


def pip(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess:
    environment = os.environ | {"LAYERS": "round", "NVCC": ""}
    command = [sys.executable, "-m", "pip", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=500, env=environment, cwd=cwd)


def built(project: Path):
    def make(folder: Path) -> None:
        done = pip("wheel", str(project), "--no-deps", "--no-build-isolation", "-w", str(folder))
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]

    return make


def installed(*wheels: Path):
    def install(folder: Path) -> None:
        done = pip("install", "-q", "--no-deps", "--target", str(folder), *map(str, wheels))
        assert done.returncode == 0, done.stderr

    return install


@pytest.fixture(scope="session")
def kernels_wheel(shared_folder):
    """That of cuffi."""
    (made,) = made_once(shared_folder / "wheel", built(ROOT)).glob("*.whl")
    return made


@pytest.fixture(scope="session")
def nets_wheel(shared_folder):
    """That of cuffi-nets."""
    (made,) = made_once(shared_folder / "nets-wheel", built(NETS)).glob("*.whl")
    return made


@pytest.fixture(scope="session")
def site(shared_folder, kernels_wheel, nets_wheel):
    """A folder where both are installed."""
    return made_once(shared_folder / "site", installed(kernels_wheel, nets_wheel))


@pytest.fixture(scope="session")
def nets_site(shared_folder, nets_wheel):
    """A folder where cuffi-nets is installed alone."""
    return made_once(shared_folder / "nets-site", installed(nets_wheel))

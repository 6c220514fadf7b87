"""Describe the machine of a measurement, for every JSON file and plot."""

import datetime
import os
import platform
import subprocess
from pathlib import Path

import torch

from cuffi.backends import GPU

ROOT = Path(__file__).resolve().parent.parent


def describe() -> dict[str, str | int]:
    cuda = torch.cuda.is_available()
    return {
        "gpu": torch.cuda.get_device_name() if cuda else "none",
        "cpu": f"{_cpu_name()}, {cores()} cores",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
    }


def line(machine: dict) -> str:
    """The description in one line."""
    gpu = "" if machine["gpu"] == "none" else f"{machine['gpu']} · "
    return f"{gpu}{machine['cpu']} · torch {machine['torch']} · {machine['date']} · {machine['commit']}"


def cores() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def devices() -> list[str]:
    return [GPU, "cpu"] if torch.cuda.is_available() else ["cpu"]


def here(device: str) -> str:
    """The name of a device in tables."""
    return torch.cuda.get_device_name() if device == GPU else f"CPU, {cores()} cores"


def gpu_arch() -> str:
    """The architecture for builds with only one: this GPU's, or the H200's if there is no GPU."""
    major, minor = torch.cuda.get_device_capability() if torch.cuda.is_available() else (9, 0)
    return f"{major}.{minor}"


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (text.partition(":")[2].strip() for text in lines if text.startswith("model name")),
        platform.machine(),
    )


def _commit() -> str:
    """The commit, with a + if files differ from it. A tree without git has no commit."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "no commit known"

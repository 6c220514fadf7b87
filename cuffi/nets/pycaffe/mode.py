"""Caffe's mode: nets run on the processor, until a script calls set_mode_gpu."""

from __future__ import annotations

import warnings

import torch

from ...base import CaffeValueError
from ..net.blob import Phase

TRAIN, TEST = Phase(0), Phase(1)
_mode = {"gpu": False, "device": 0, "seed": 0}


def set_mode_cpu() -> None:
    """Run all nets on the processor."""
    _mode["gpu"] = False


def set_mode_gpu() -> None:
    """Run all nets on the GPU. Without one they run on the processor, with a warning."""
    _mode["gpu"] = torch.cuda.is_available()
    if not _mode["gpu"]:
        built = torch.version.cuda or torch.version.hip
        step = "leave the line out, or see what torch finds: cuffi info"
        if not built:
            step = "leave the line out, or install a torch that is built for CUDA"
        warnings.warn(f"set_mode_gpu: torch has no GPU: the nets run on the processor: {step}", stacklevel=2)


def set_device(number: int) -> None:
    """Choose a GPU."""
    if torch.cuda.is_available() and not 0 <= int(number) < torch.cuda.device_count():
        raise CaffeValueError(f"set_device: no GPU {number}; torch has {torch.cuda.device_count()}")
    _mode["device"] = int(number)


def set_random_seed(seed: int) -> None:
    """Seed torch's random numbers, which fillers and layers use, and those of data layers that are made later."""
    _mode["seed"] = int(seed)
    torch.manual_seed(int(seed))


def seed() -> int:
    """The seed of data layers."""
    return _mode["seed"]


def device() -> torch.device:
    """Where nets run."""
    return torch.device("cuda", _mode["device"]) if _mode["gpu"] else torch.device("cpu")

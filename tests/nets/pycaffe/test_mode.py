"""Caffe's mode: the device on which nets run."""

import pytest
import torch

from cuffi.base import CaffeValueError
from cuffi.nets.pycaffe import mode


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    monkeypatch.setattr(mode, "_mode", {"gpu": False, "device": 0})


def test_nets_run_on_the_processor_until_a_script_says_otherwise(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    mode.set_device(2)
    assert mode.device() == torch.device("cpu")
    mode.set_mode_gpu()
    assert mode.device() == torch.device("cuda", 2)
    mode.set_mode_cpu()
    assert mode.device() == torch.device("cpu")
    with pytest.raises(CaffeValueError, match="set_device: no GPU 3; torch has 3"):
        mode.set_device(3)
    with pytest.raises(CaffeValueError, match="no GPU -1"):
        mode.set_device(-1)


def test_without_a_gpu_there_is_a_warning(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    mode.set_device(7)  # a script of another machine
    for built, step in ((None, "install a torch that is built for CUDA"), ("13.0", "cuffi info")):
        monkeypatch.setattr(torch.version, "cuda", built)
        with pytest.warns(UserWarning, match=f"torch has no GPU: .*leave the line out, or .*{step}"):
            mode.set_mode_gpu()
    assert mode.device() == torch.device("cpu")


def test_a_seed_is_torchs():
    mode.set_random_seed(5)
    drawn = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(3), drawn)

"""A saved layer is loaded in a new process, where nothing of the wing was imported before."""

import sys

import pytest
import torch
from support import python_with_torch

from cuffi import caffe_net


@pytest.mark.parametrize("type_name", ["ReLU", "Permute"])
def test_a_layer_is_loaded_in_another_process(tmp_path, type_name):
    layer = f'layer {{ name: "y" type: "{type_name}" bottom: "x" top: "y" }}'
    net = caffe_net(f'input: "x" input_shape {{ dim: 1 dim: 2 dim: 3 dim: 4 }}\n{layer}')
    torch.save(net.y, tmp_path / "y.pt")
    code = f"import torch; print(type(torch.load({str(tmp_path / 'y.pt')!r}, weights_only=False)).__name__)"
    done = python_with_torch.run([sys.executable, "-c", code])
    assert done.returncode == 0 and done.stdout.strip() == type_name, done.stderr

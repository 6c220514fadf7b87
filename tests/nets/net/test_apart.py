"""What runs a net for its own purposes leaves no trace: state, statistics, generators, counters, modes."""

import random

import numpy as np
import pytest
import torch

from cuffi import CaffeError, caffe_net
from cuffi.nets.dnn.opencv_net import Net
from cuffi.nets.net.apart import apart

NET = """input: "x" input_shape { dim: 3 dim: 2 dim: 4 dim: 2 } input: "cont" input_shape { dim: 3 dim: 2 }
layer { name: "norm" type: "BatchNorm" bottom: "x" top: "n" batch_norm_param { use_global_stats: %s } }
layer { name: "drop" type: "Dropout" bottom: "n" top: "d" dropout_param { %s } }
layer { name: "l" type: "LSTM" bottom: "d" bottom: "cont" top: "h"
  recurrent_param { num_output: 3 weight_filler { type: "xavier" } } }"""
DRAWS = NET % ("false", "sample_weights_test: true")
PLAIN = NET % ("true", "")


def to_onnx(net, folder):
    pytest.importorskip("onnxscript")
    assert net.to_onnx(folder / "a.onnx").agrees


def refused_onnx(net, folder):
    pytest.importorskip("onnxscript")
    with pytest.raises(CaffeError):
        net.to_onnx(folder / "a.onnx")


def in_twin(net, folder):
    with apart(net) as twin:
        assert not twin.training
        for module in twin.modules():
            module.train()
        twin(**inputs(), blobs=True)
        random.random(), np.random.rand()


DOORS = {
    "to_onnx": (PLAIN, to_onnx),
    "to_onnx, refused": (DRAWS, refused_onnx),
    "fuse": (DRAWS, lambda net, folder: net.fuse()),
    "a twin": (DRAWS, in_twin),
    "getLayerShapes": (DRAWS, lambda net, folder: Net(net).getLayerShapes((3, 2, 4, 2), 3)),
    "data_loaders": (DRAWS, lambda net, folder: net.data_loaders()),
    "outputs": (DRAWS, lambda net, folder: (net.outputs, net.shapes, net.parameter_groups(0.1), str(net))),
}


def inputs():
    return {"x": torch.arange(48.0).reshape(3, 2, 4, 2).sin(), "cont": torch.ones(3, 2)}


def traces(net):
    """All that a call may change."""
    states = [value for state in net.l._state.values() for value in state]
    generators = (
        torch.get_rng_state(),
        torch.from_numpy(np.random.get_state(legacy=False)["state"]["key"].astype(np.int64)),
    )
    python = torch.tensor(random.getstate()[1])
    tensors = [*net.state_dict().values(), *states, *generators, python]
    modes = [module.training for module in net.modules()]
    return [tensor.clone() for tensor in tensors], modes, list(net.l._state)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("door", DOORS)
def test_it_leaves_no_trace(door, training, tmp_path):
    text, through = DOORS[door]
    net = caffe_net(text).train(training)
    net.drop.train(not training)  # a mode that the net did not choose
    with torch.no_grad():
        net(**inputs())
    tensors, *others = traces(net)
    through(net, tmp_path)
    after, *others_after = traces(net)
    assert others == others_after
    assert len(tensors) == len(after)
    for before, now in zip(tensors, after, strict=True):
        assert torch.equal(before, now)


def test_a_twin_has_the_net_s_weights_and_no_memory_of_its_own_for_them():
    net = caffe_net(PLAIN)
    with apart(net) as twin:
        assert twin.l.weight_x is net.l.weight_x and twin.norm.mean is not net.norm.mean
        with torch.no_grad():
            assert torch.equal(twin(**inputs()), caffe_equal(net))


def caffe_equal(net):
    for module in net.children():
        if hasattr(module, "reset"):
            module.reset()
    return net.eval()(**inputs())

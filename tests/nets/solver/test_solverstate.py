"""Snapshots of a solver: they are read back as written; other files are refused, and change nothing."""

import copy

import pytest
import torch

from cuffi import caffe_net
from cuffi.nets.pycaffe.proto import caffe_pb2
from cuffi.nets.solver import caffe_solver
from cuffi.nets.solver.solverstate import load_solverstate, newest, save_solverstate

NET = """
input: "data" input_shape { dim: 4 dim: 3 } input: "label" input_shape { dim: 4 dim: 2 }
layer { name: "a" type: "InnerProduct" bottom: "data" top: "a" param { name: "w" } param { lr_mult: 0 }
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "n" type: "BatchNorm" bottom: "a" top: "n" }
layer { name: "b" type: "InnerProduct" bottom: "n" top: "b" param { name: "w" }
  inner_product_param { num_output: 3 bias_term: false } }
layer { name: "c" type: "InnerProduct" bottom: "b" top: "c"
  inner_product_param { num_output: 2 bias_term: false weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "c" bottom: "label" top: "loss" }
"""
LINE = 'base_lr: 0.1 lr_policy: "step" gamma: 0.5 stepsize: 2 momentum: 0.9 type: "{}"'


def trained(folder, kind="SGD", updates=5):
    (folder / "s.prototxt").write_text(LINE.format(kind))
    torch.manual_seed(3)
    net = caffe_net(NET, train=True)
    optimizer, schedule = caffe_solver(folder / "s.prototxt", net)
    for _ in range(updates):
        optimizer.zero_grad()
        net.loss(net(data=torch.randn(4, 3), label=torch.randn(4, 2))).backward()
        optimizer.step()
        schedule.step()
    return net, optimizer, schedule


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_it_is_caffe_s_message(kind, tmp_path):
    """Read by protobuf: learnable_params in the net's order, shared blobs once, statistics among them."""
    net, optimizer, _ = trained(tmp_path, kind)
    save_solverstate(tmp_path / "x.solverstate", net, optimizer, 5, "x.caffemodel")
    state = caffe_pb2.SolverState.FromString((tmp_path / "x.solverstate").read_bytes())
    assert (state.iter, state.learned_net, state.current_step) == (5, "x.caffemodel", 2)
    shapes = [[3, 3], [3], [3], [3], [1], [2, 3]] * (1 + (kind == "Adam"))
    assert [list(blob.shape.dim) for blob in state.history] == shapes
    history = optimizer.state[net.c.weight]["history"]
    assert list(state.history[5].data) == history.reshape(-1).tolist()
    assert not any(state.history[1].data)


@pytest.mark.parametrize("kind", ["SGD", "AdaDelta"])
def test_it_continues(kind, tmp_path):
    net, optimizer, schedule = trained(tmp_path, kind)
    save_solverstate(tmp_path / "x.solverstate", net, optimizer, 5)
    other = copy.deepcopy(net)
    its_optimizer, its_schedule = caffe_solver(tmp_path / "s.prototxt", other)
    state = load_solverstate(tmp_path / "x.solverstate", other, its_optimizer, its_schedule)
    assert state.iteration == 5 and its_schedule.last_epoch == 5
    batch = {"data": torch.randn(4, 3), "label": torch.randn(4, 2)}
    for one, opt, sched in ((net, optimizer, schedule), (other, its_optimizer, its_schedule)):
        for _ in range(3):
            opt.zero_grad()
            one.loss(one(**batch)).backward()
            opt.step()
            sched.step()
    for p, q in zip(net.parameters(), other.parameters(), strict=True):
        assert torch.equal(p, q)


def test_what_does_not_fit_is_refused(tmp_path):
    net, optimizer, schedule = trained(tmp_path)
    path = tmp_path / "x.solverstate"
    save_solverstate(path, net, optimizer, 5)
    whole = path.read_bytes()
    other = caffe_net(NET.replace("dim: 3 }", "dim: 7 }", 1).replace('name: "w"', ""), train=True)
    its_optimizer, _ = caffe_solver(tmp_path / "s.prototxt", other)
    with pytest.raises(
        ValueError, match=r"x\.solverstate: 6 histories; SGD has 1 for each of the net's 7 blobs"
    ):
        load_solverstate(path, other, its_optimizer)
    before = copy.deepcopy(optimizer.state_dict())
    for cut in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match=r"x\.solverstate"):
            load_solverstate(path, net, optimizer, schedule)
    assert repr(before) == repr(optimizer.state_dict())


def test_the_newest_snapshot_is_complete(tmp_path):
    for name in (
        "n_iter_5.solverstate",
        "n_iter_10.solverstate",
        "n_iter_20.solverstate",
        "m_iter_30.solverstate",
    ):
        (tmp_path / name).touch()
    assert newest(f"{tmp_path}/n") is None
    for name in ("n_iter_5", "n_iter_10", "m_iter_30"):
        (tmp_path / f"{name}.caffemodel").touch()
    assert newest(f"{tmp_path}/n") == tmp_path / "n_iter_10.solverstate"

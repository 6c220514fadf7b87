"""Caffe's loop: killed and resumed, it gives the same weights; tests, snapshots and refusals."""

import os
import re
import signal
import subprocess
import sys

import pytest
import torch
from conftest import ROOT

from cuffi.train import Training, main

NET = """
name: "small"
layer { name: "data" type: "HDF5Data" top: "data" top: "label" include { phase: TRAIN }
  hdf5_data_param { source: "list.txt" batch_size: 5 shuffle: true } }
layer { name: "data" type: "HDF5Data" top: "data" top: "label" include { phase: TEST }
  hdf5_data_param { source: "list.txt" batch_size: 4 } }
layer { name: "a" type: "InnerProduct" bottom: "data" top: "a" param { lr_mult: 1 } param { lr_mult: 2 }
  inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
layer { name: "n" type: "BatchNorm" bottom: "a" top: "a" }
layer { name: "drop" type: "Dropout" bottom: "a" top: "a" }
layer { name: "b" type: "InnerProduct" bottom: "a" top: "b"
  inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "b" bottom: "label" top: "loss" }
"""
SOLVER = """
net: "net.prototxt" base_lr: 0.05 momentum: 0.9 lr_policy: "inv" gamma: 0.01 power: 0.75 iter_size: 2
max_iter: 12 snapshot: 4 display: 3 average_loss: 2 test_iter: 3 test_interval: 6 random_seed: 7
snapshot_prefix: "PREFIX"
"""


@pytest.fixture
def folder(tmp_path):
    h5py = pytest.importorskip("h5py")
    (tmp_path / "out").mkdir()
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        rows = torch.randn(23, 3, generator=torch.Generator().manual_seed(1))
        file["data"] = rows.numpy()
        file["label"] = rows.sum(1, keepdim=True).numpy()
    (tmp_path / "list.txt").write_text("rows.h5\n")
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "solver.prototxt").write_text(SOLVER.replace("PREFIX", str(tmp_path / "out" / "s")))
    return tmp_path


def weights(folder) -> bytes:
    return (folder / "out" / "s_iter_12.caffemodel").read_bytes()


def test_a_killed_run_resumes_to_the_bit(folder):
    Training(folder / "solver.prototxt", log=lambda line: None).run()
    whole = weights(folder)
    for killed_at in (1, 5, 6, 11):
        for file in (folder / "out").iterdir():
            file.unlink()
        first = Training(folder / "solver.prototxt", log=lambda line: None)
        first.step(killed_at)
        torch.manual_seed(999)  # another process has other random numbers
        lines = []
        second = Training(folder / "solver.prototxt", log=lines.append)
        second.resume()
        assert second.iteration == killed_at // 4 * 4
        assert ("training starts at 0" in lines[0]) == (killed_at < 4)
        second.run()
        assert weights(folder) == whole


def test_a_process_that_is_killed_resumes_to_the_bit(folder):
    """By the command, killed with SIGKILL at its second snapshot; incomplete files are not used."""
    command = [sys.executable, "-u", "-m", "cuffi.train", str(folder / "solver.prototxt")]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    seen = 0
    for line in process.stdout:
        seen += line.startswith("Snapshot:")
        if seen == 2:
            os.kill(process.pid, signal.SIGKILL)
            break
    process.wait()
    assert process.returncode == -signal.SIGKILL
    (folder / "out" / "s_iter_11.solverstate").write_bytes(b"\x08")  # no weights beside it
    assert main([str(folder / "solver.prototxt"), "--resume"]) == 0
    resumed = weights(folder)
    for file in (folder / "out").iterdir():
        file.unlink()
    assert main([str(folder / "solver.prototxt")]) == 0
    assert weights(folder) == resumed


def test_what_is_logged(folder):
    lines = []
    training = Training(folder / "solver.prototxt", log=lines.append)
    training.run()
    shown = [line.split(",")[0] for line in lines if ", lr" in line]
    assert shown == [f"Iteration {i}" for i in (0, 3, 6, 9)]
    tests = [line.partition(":")[0] for line in lines if "test net" in line]
    assert tests == [f"Iteration {i}, test net #0" for i in (0, 6, 12)]
    curve = training.write_curve()
    assert curve.exists() and (folder / "out" / "s_loss.csv").read_text().startswith("iteration,lr,loss\n0,")
    found = sorted(file.name for file in (folder / "out").glob("*.caffemodel"))
    assert found == ["s_iter_12.caffemodel", "s_iter_4.caffemodel", "s_iter_8.caffemodel"]


def test_a_test_net_of_its_own_has_the_trained_weights(folder):
    text = (folder / "solver.prototxt").read_text().replace("net:", "train_net:", 1)
    (folder / "test.prototxt").write_text(NET)
    (folder / "solver.prototxt").write_text(text + 'test_net: "test.prototxt"')
    training = Training(folder / "solver.prototxt", log=lambda line: None)
    (test_net,) = training.test_nets
    assert test_net is not training.net and test_net.a.weight is training.net.a.weight
    before = training.test()[0]["loss"]
    training.step(6)
    assert test_net.n.mean is training.net.n.mean
    assert not torch.equal(training.test()[0]["loss"], before)


def test_the_loss_is_that_of_a_loop_by_hand(folder):
    """Data given by the user; plain autograd and the formula of SGD."""
    torch.manual_seed(0)
    batches = [{"data": torch.randn(5, 3), "label": torch.randn(5, 1)} for _ in range(8)]
    training = Training(
        folder / "solver.prototxt",
        data=lambda start: iter(batches[start:]),
        test_data=[],
        log=lambda line: None,
    )
    training.net.drop.ratio = 0.0
    state = {name: value.clone() for name, value in training.net.state_dict().items()}
    training.step(3)
    by_hand = Training(
        folder / "solver.prototxt",
        data=lambda start: iter(batches[start:]),
        test_data=[],
        log=lambda line: None,
    ).net
    by_hand.drop.ratio = 0.0
    by_hand.load_state_dict(state)
    parameters = dict(by_hand.named_parameters())
    memory = {name: torch.zeros_like(p) for name, p in parameters.items()}
    for i in range(3):
        by_hand.zero_grad()
        for batch in batches[2 * i : 2 * i + 2]:
            by_hand(**batch).backward()
        with torch.no_grad():
            for name, p in parameters.items():
                rate = 0.05 * (1 + 0.01 * i) ** -0.75 * (2 if name == "a.bias" else 1)
                memory[name] = 0.9 * memory[name] + rate * p.grad / 2
                p -= memory[name]
    for name, p in training.net.named_parameters():
        torch.testing.assert_close(p, parameters[name], rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="the data ended at iteration 4"):
        training.step(2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"net: ": "nett: "}, "no field 'nett'"),
        ({"net.prototxt": "missing.prototxt"}, "its net: .*missing.prototxt"),
        ({"test_iter: 3": "test_iter: 3 test_iter: 4 test_state { }"}, "test_state: 1 for 2 test nets"),
    ],
)
def test_refusals(change, words, folder, capsys):
    text = (folder / "solver.prototxt").read_text()
    for old, new in change.items():
        text = text.replace(old, new, 1)
    (folder / "solver.prototxt").write_text(text)
    assert main([str(folder / "solver.prototxt")]) == 1
    assert re.search(words, capsys.readouterr().err)

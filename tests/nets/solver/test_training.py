"""Caffe's loop: killed and resumed, it gives the same weights; tests, snapshots and refusals."""

import os
import re
import signal
import subprocess
import sys
from typing import Any

import pytest
import torch
from support import python_with_torch
from support.root import ROOT
from support.typed import not_none

from cuffi import CaffeValueError
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


def test_the_end_shows_the_loss_of_one_more_batch(folder):
    """As Caffe's Solver::Solve: a forward of the train net after the last snapshot, and the mean of average_loss."""
    solver = folder / "solver.prototxt"
    solver.write_text(solver.read_text().replace("average_loss: 2", "average_loss: 1"))
    lines = []
    training = Training(solver, log=lines.append)
    training.run()
    shown = [line.split("] ")[1] for line in lines if "loss = " in line and "Iteration" in line]
    assert [line.split(",")[0] for line in shown] == [f"Iteration {i}" for i in (0, 3, 6, 9, 12)]
    assert shown[-1] == f"Iteration 12, loss = {float(training._outputs['loss']):g}"
    where = [
        i for i, line in enumerate(lines) if "Iteration 12, loss" in line or "Snapshotting solver" in line
    ]
    assert "Iteration 12, loss" in lines[where[-1]] and "Iteration 12, Testing" in lines[where[-1] + 1]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP here")
def test_a_closed_terminal_makes_a_snapshot_and_training_goes_on(folder):
    """Caffe's sighup_effect is a snapshot."""
    lines = []

    def log(line):
        lines.append(line)
        if "Iteration 9, loss" in line:
            os.kill(os.getpid(), signal.SIGHUP)

    training = Training(folder / "solver.prototxt", log=log)
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    training.run()
    assert signal.signal(signal.SIGHUP, before) is signal.SIG_DFL
    assert training.iteration == 12 and (folder / "out" / "s_iter_10.solverstate").exists()


def test_a_source_that_is_missing_is_told_before_anything_is_solved(folder, monkeypatch):
    """With the net's file, the layer and what the source is."""
    monkeypatch.chdir(folder)
    lines = []
    training = Training("solver.prototxt", log=lines.append, test_data=[])
    (folder / "list.txt").unlink()
    lines.clear()
    with pytest.raises(CaffeValueError) as raised:
        training.run()
    assert not lines
    assert str(raised.value).startswith(
        "net.prototxt: layer 'data' (HDF5Data), line 3: no such file: list.txt "
    )
    assert str(raised.value).endswith("the layer's source, a text file that names an .h5 file in each line")


@pytest.mark.parametrize(
    ("words", "device"), [(["-solver", "S"], None), (["--solver=S", "-gpu", "1"], "cuda:1"), (["S"], None)]
)
def test_the_words_of_caffe_train(words, device, monkeypatch):
    def found(path, **options):
        raise CaffeValueError(f"{path} on {options['device']}")

    monkeypatch.setattr("cuffi.train.Training", found)
    said = []
    monkeypatch.setattr("builtins.print", lambda text, **_: said.append(text))
    assert main(words) == 1 and said == [f"train: S on {device}"]


def test_several_gpus_are_torchruns(capsys):
    with pytest.raises(SystemExit):
        main(["-solver", "S", "-gpu", "0,1"], "cuffi train")
    assert "cuffi train: -gpu: expected the number of one GPU, got '0,1'. torchrun" in capsys.readouterr().err


def test_the_file_s_weights_are_where_training_begins(folder):
    Training(folder / "solver.prototxt", log=lambda line: None).net.save_caffemodel(folder / "w.caffemodel")
    file = folder / "solver.prototxt"
    file.write_text(file.read_text().replace("random_seed: 7", "random_seed: 8 weights: 'w.caffemodel'"))
    training = Training(file, log=lambda line: None)
    training.net.save_caffemodel(folder / "again.caffemodel")
    assert (folder / "again.caffemodel").read_bytes() == (folder / "w.caffemodel").read_bytes()
    file.write_text(file.read_text().replace("w.caffemodel", "w.caffemodel,absent.caffemodel"))
    with pytest.raises(CaffeValueError, match=r"absent\.caffemodel"):
        Training(file)


def test_fields_of_ssd_s_tests_are_said(folder):
    file, lines = folder / "solver.prototxt", []
    file.write_text(file.read_text() + "eval_type: 'detection' ap_version: '11point'")
    Training(file, log=lines.append)
    assert sum("eval_type, ap_version: tests log the means" in line for line in lines) == 1


def test_a_process_that_is_killed_resumes_to_the_bit(folder):
    """By the command, killed with SIGKILL at its second snapshot; incomplete files are not used."""
    command = [sys.executable, "-u", "-m", "cuffi.train", str(folder / "solver.prototxt")]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    seen = 0
    for line in not_none(process.stderr):
        seen += "Snapshotting solver state" in line
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
    matches = [re.search(r"\] (Iteration \d+), loss", line) for line in lines if ", loss" in line]
    shown = [not_none(match)[1] for match in matches]
    assert shown == [f"Iteration {i}" for i in (0, 3, 6, 9, 12)]
    tests = [line.partition("] ")[2] for line in lines if "Testing net" in line]
    assert tests == [f"Iteration {i}, Testing net (#0)" for i in (0, 6, 12)]
    curve = training.write_curve()
    assert curve.exists() and (folder / "out" / "s_loss.csv").read_text().startswith("iteration,lr,loss\n0,")
    found = sorted(file.name for file in (folder / "out").glob("*.caffemodel"))
    assert found == ["s_iter_12.caffemodel", "s_iter_4.caffemodel", "s_iter_8.caffemodel"]


def test_a_test_net_of_its_own_has_the_trained_weights(folder):
    text = (folder / "solver.prototxt").read_text().replace("net:", "train_net:", 1)
    (folder / "test.prototxt").write_text(NET)
    (folder / "solver.prototxt").write_text(text + 'test_net: "test.prototxt"')
    training = Training(folder / "solver.prototxt", log=lambda line: None)
    nets: list[Any] = [training.net, *training.test_nets]
    net, test_net = nets
    assert test_net is not net and test_net.a.weight is net.a.weight
    before = training.test()[0]["loss"]
    training.step(6)
    assert test_net.n.mean is net.n.mean
    assert not torch.equal(training.test()[0]["loss"], before)


def drop_nothing(net: Any) -> None:
    net.drop.ratio = 0.0


def test_the_loss_is_that_of_a_loop_by_hand(folder):
    """Data given by the user; plain autograd and the formula of SGD."""
    torch.manual_seed(0)
    batches = [{"data": torch.randn(5, 3), "label": torch.randn(5, 1)} for _ in range(8)]
    training = Training(
        folder / "solver.prototxt",
        data=lambda start: iter(batches[start:]),
        test_data=[],
        log=lambda line: None,
        device="cpu",
    )
    drop_nothing(training.net)
    state = {name: value.clone() for name, value in training.net.state_dict().items()}
    training.step(3)
    by_hand = Training(
        folder / "solver.prototxt",
        data=lambda start: iter(batches[start:]),
        test_data=[],
        log=lambda line: None,
        device="cpu",
    ).net
    drop_nothing(by_hand)
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
                memory[name] = 0.9 * memory[name] + rate * not_none(p.grad) / 2
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({'top: "label" include { phase: TRAIN }': 'top: "labels" include { phase: TRAIN }', "size: 4": "size: 5"},
         r"net.prototxt, line 13: 'loss' \(EuclideanLoss\): no data layer of phase TRAIN reads 'label'"),
        ({'"HDF5Data" top: "data" top: "label" include { phase: TRAIN }':
          '"Input" top: "data" top: "label" input_param { shape { dim: 5 dim: 3 } shape { dim: 5 dim: 1 } } '
          "include { phase: TRAIN }"},
         r"net.prototxt, line 3: 'data' \(Input\): no data layer of phase TRAIN reads 'data'"),
    ],
)  # fmt: skip
def test_a_blob_that_nothing_reads_is_named_with_its_layer(change, words, folder, capsys):
    h5py = pytest.importorskip("h5py")
    text = NET
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new, 1)
    with h5py.File(folder / "rows.h5", "a") as file:
        file["labels"] = file["label"][:]
    (folder / "net.prototxt").write_text(text)
    assert main([str(folder / "solver.prototxt")]) == 1
    assert re.search(words, capsys.readouterr().err)


@pytest.mark.parametrize("stop", ["data", "loss", "test"])
def test_an_iteration_that_is_cut_off_leaves_no_trace(folder, stop, monkeypatch):
    """KeyboardInterrupt in the middle of iteration 6, a snapshot, and a new process: as an undisturbed run."""
    Training(folder / "solver.prototxt", log=lambda line: None).run()
    whole = weights(folder)
    for file in (folder / "out").iterdir():
        file.unlink()
    first, calls = Training(folder / "solver.prototxt", log=lambda line: None), []

    def cut(number, original):
        def call(*args, **kwargs):
            calls.append(1)
            made = original(*args, **kwargs)
            if len(calls) == number:
                raise KeyboardInterrupt
            return made

        return call

    if stop == "data":
        monkeypatch.setattr(first, "_moved", cut(14, first._moved))
    elif stop == "loss":
        monkeypatch.setattr(first.net, "loss", cut(13, first.net.loss))
    else:
        monkeypatch.setattr(first, "test", cut(2, first.test))
    with pytest.raises(KeyboardInterrupt):
        first.run()
    assert first.iteration == 6
    first.snapshot()
    second = Training(folder / "solver.prototxt", log=lambda line: None)
    second.resume()
    assert second.iteration == 6
    second.run()
    assert weights(folder) == whole


def test_ctrl_c_waits_for_the_end_of_an_iteration(folder):
    """A real SIGINT, by the command, in a data layer: whole iterations, a snapshot, and the same weights in the end."""
    assert main([str(folder / "solver.prototxt")]) == 0
    whole = weights(folder)
    for file in (folder / "out").iterdir():
        file.unlink()
    code = (
        "import os, signal, sys; from cuffi import train; from cuffi.nets.solver.training import Training\n"
        "moved, calls = Training._moved, []\n"
        "def slow(self, batch):\n"
        "    calls.append(1)\n"
        "    if len(calls) == 10: os.kill(os.getpid(), signal.SIGINT)\n"
        "    return moved(self, batch)\n"
        "Training._moved = slow\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.exit(train.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, str(folder / "solver.prototxt")]
    done = python_with_torch.run(command)
    assert done.returncode == 0 and "Optimization stopped early." in done.stderr
    assert (folder / "out" / "s_iter_5.solverstate").exists()
    assert main([str(folder / "solver.prototxt"), "--resume"]) == 0
    assert weights(folder) == whole


def test_the_log_is_read_by_parse_log(folder):
    """The patterns of BVLC's tools/extra/parse_log.py and extract_seconds.py, on every line."""
    lines = []
    Training(folder / "solver.prototxt", log=lines.append).run()
    rows, iteration, start = {"Train": [], "Test": []}, None, None
    for line in lines:
        words = line.split()
        month, day, second = int(words[0][1:3]), int(words[0][3:]), float(words[1].rpartition(":")[2])
        assert (1 <= month <= 12, 1 <= day <= 31, 0 <= second < 60) == (True,) * 3
        start = start or ("] Solving " in line)
        iteration = found[1] if (found := re.search(r"Iteration (\d+)", line)) else iteration
        for kind in rows:
            if found := re.search(kind + r" net output #(\d+): (\S+) = ([\.\deE+-]+)", line):
                rows[kind].append((int(not_none(iteration)), int(found[1]), found[2]))
    assert start and rows["Train"] == [(i, 0, "loss") for i in (0, 3, 6, 9)]
    # Caffe's last line has no outputs of the net.
    assert sum("Iteration 12, loss = " in line for line in lines) == 1
    assert rows["Test"] == [(i, 0, "loss") for i in (0, 6, 12)]
    rates = [
        float(found[1])
        for line in lines
        if (found := re.search(r"lr = ([-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?)", line))
    ]
    assert rates == [pytest.approx(0.05 * (1 + 0.01 * i) ** -0.75, rel=1e-4) for i in (0, 3, 6, 9)]


def test_a_disk_that_is_full_leaves_no_weights_alone(folder, monkeypatch):
    training = Training(folder / "solver.prototxt", log=lambda line: None)
    training.step(4)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device", "s_iter_5.solverstate")

    training.step(1)
    monkeypatch.setattr("cuffi.nets.solver.snapshots.save_solverstate", full)
    with pytest.raises(OSError, match=r"s_iter_5\.solverstate"):
        training.snapshot()
    assert sorted(file.name for file in (folder / "out").iterdir()) == [
        "s_iter_4.caffemodel", "s_iter_4.random", "s_iter_4.solverstate"
    ]  # fmt: skip


PLAIN = """
layer { name: "d" type: "DummyData" top: "x" top: "t" dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 1 }
  data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 2 } } }
"""
IP = """layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 1
  weight_filler { type: "xavier" } } }"""
LOSS = 'layer { name: "l" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }'
HEAD = 'layer { name: "d" type: "%s" top: "x" top: "t" %s }'
ROWS = """
import caffe
class Rows(caffe.Layer):
    def setup(self, bottom, top):
        top[0].reshape(4, 3), top[1].reshape(4, 1)
    def reshape(self, bottom, top): pass
    def forward(self, bottom, top):
        top[0].data[...], top[1].data[...] = 1, 2
    def backward(self, top, propagate_down, bottom): pass
"""


@pytest.mark.parametrize(
    ("net", "runs"),
    [
        (PLAIN + IP + LOSS, True),
        (PLAIN + LOSS.replace('"y"', '"t"'), True),  # no parameter
        (PLAIN + IP, True),  # no loss
        (HEAD % ("Python", 'python_param { module: "rows" layer: "Rows" }') + IP + LOSS, True),
        (HEAD % ("MemoryData", "memory_data_param { batch_size: 4 channels: 3 height: 1 width: 1 }") + IP + LOSS,
         r"MemoryData is not read.*Training\(data=...\)"),
    ],
)  # fmt: skip
def test_nets_without_files(net, runs, tmp_path, monkeypatch, capsys):
    (tmp_path / "rows.py").write_text(ROWS)
    (tmp_path / "net.prototxt").write_text(net)
    (tmp_path / "solver.prototxt").write_text(
        'net: "net.prototxt" base_lr: 0.1 momentum: 0.9 clip_gradients: 1 lr_policy: "fixed" max_iter: 3 display: 1'
    )
    monkeypatch.chdir(tmp_path)
    assert main(["solver.prototxt", "--python-layers"]) == (runs is not True)
    written = capsys.readouterr()
    if runs is True:
        assert (tmp_path / "solver_iter_3.solverstate").exists() and "Iteration 2, loss" in written.err
    else:
        assert re.search(runs, written.err)
    if "Python" in net:
        assert main(["solver.prototxt"]) == 1
        assert "runs Python code, rows.Rows. If you trust it" in capsys.readouterr().err


def test_a_loss_that_is_not_finite_is_said_once(tmp_path):
    (tmp_path / "net.prototxt").write_text(PLAIN + IP + LOSS)
    (tmp_path / "solver.prototxt").write_text(
        f'net: "{tmp_path}/net.prototxt" base_lr: 1e30 momentum: 0.9 lr_policy: "fixed" display: 1 debug_info: true '
        "snapshot_diff: true"
    )
    lines = []
    Training(tmp_path / "solver.prototxt", log=lines.append).step(8)
    said = [line for line in lines if line[0] == "W"]
    assert [word for word in ("debug_info", "snapshot_diff") if sum(word in line for line in said) != 1] == []
    assert sum("the loss is" in line for line in said) == 1 and "Training goes on" in said[-1]
    assert sum("lr = " in line for line in lines) == 8  # it goes on, as Caffe


def test_paths_begin_where_make_was_called(tmp_path):
    """`make -C toolkit train SOLVER=s.prototxt` in the user's folder: net, snapshots and curve are there."""
    (tmp_path / "net.prototxt").write_text(PLAIN + IP + LOSS)
    (tmp_path / "s.prototxt").write_text(
        'net: "net.prototxt" base_lr: 0.1 lr_policy: "fixed" max_iter: 1 display: 1 snapshot_prefix: "out/a"'
    )
    command = [sys.executable, "-m", "cuffi.train", "--directory", str(tmp_path), "s.prototxt"]
    environment = os.environ | {"LAYERS_DIR": "layers"}
    done = python_with_torch.run(command, env=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "a_iter_1.solverstate").exists() and (tmp_path / "out" / "a_loss.csv").exists()

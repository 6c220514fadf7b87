"""caffe.get_solver: a script that writes inputs, steps, and reads blobs and parameters."""

import numpy as np
import pytest

from cuffi import caffe

NET = """
layer { name: "data" type: "Input" top: "data" top: "label"
  input_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" param { lr_mult: 1 } param { lr_mult: 2 }
  inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


@pytest.fixture
def solver_file(tmp_path):
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "solver.prototxt").write_text(
        f'net: "{tmp_path}/net.prototxt" type: "SGD" base_lr: 0.1 momentum: 0.9 lr_policy: "fixed" max_iter: 4 '
        f'test_iter: 2 test_interval: 100 test_initialization: false snapshot_prefix: "{tmp_path}/s"'
    )
    return tmp_path / "solver.prototxt"


def filled(solver):
    random = np.random.default_rng(3)
    solver.net.blobs["data"].data[...] = random.standard_normal((4, 3))
    solver.net.blobs["label"].data[...] = random.standard_normal((4, 1))
    return solver


def test_steps_follow_caffe_s_update(solver_file):
    """Against SGD with momentum by hand, on arrays that the script wrote and reads."""
    solver = filled(caffe.get_solver(str(solver_file)))
    x, y = (solver.net.blobs[name].data.astype(np.float64) for name in ("data", "label"))
    w, b = (p.data.astype(np.float64) for p in solver.net.params["ip"])
    memory = [0.0, 0.0]
    for step in range(3):
        off = x @ w.T + b - y
        loss = (off**2).sum() / 8
        gradients = [off.T @ x / 4, off.sum(0) / 4]
        solver.step(1)
        assert solver.net.blobs["loss"].data == pytest.approx(loss, rel=1e-4)
        np.testing.assert_allclose(solver.net.params["ip"][0].diff, gradients[0], rtol=1e-3, atol=1e-6)
        memory = [0.9 * m + 0.1 * lr * g for m, lr, g in zip(memory, (1, 2), gradients, strict=True)]
        w, b = w - memory[0], b - memory[1]
        np.testing.assert_allclose(solver.net.params["ip"][0].data, w, rtol=1e-4)
        assert solver.iter == step + 1
    np.testing.assert_allclose(solver.net.params["ip"][1].data, b, rtol=1e-4)


def test_test_nets_share_and_snapshots_restore(solver_file, tmp_path):
    solver = filled(caffe.SGDSolver(str(solver_file)))
    (test_net,) = solver.test_nets
    solver.step(2)
    np.testing.assert_array_equal(test_net.params["ip"][0].data, solver.net.params["ip"][0].data)
    solver.snapshot()
    solver.solve()
    assert solver.iter == 4 == solver.param.max_iter
    other = filled(caffe.SGDSolver(str(solver_file)))
    other.restore(str(tmp_path / "s_iter_2.solverstate"))
    assert other.iter == 2
    other.solve()
    np.testing.assert_array_equal(other.net.params["ip"][0].data, solver.net.params["ip"][0].data)


def test_a_class_has_its_own_rule(solver_file):
    """pycaffe's SGDSolver of a file with another type is an SGD solver: scripts always write caffe.SGDSolver."""
    text = solver_file.read_text()
    own = filled(caffe.SGDSolver(str(solver_file)))
    other = solver_file.with_name("adam.prototxt")
    other.write_text(text.replace('"SGD"', '"Adam"') + " random_seed: 4")
    solver = filled(caffe.SGDSolver(str(other)))
    for mine, its in zip(solver.net.params["ip"], own.net.params["ip"], strict=True):
        mine.data[...] = its.data
    for each in (own, solver):
        each.step(3)
    np.testing.assert_array_equal(solver.net.params["ip"][0].data, own.net.params["ip"][0].data)
    adam = filled(caffe.get_solver(str(other)))
    start = adam.net.params["ip"][0].data.copy()
    adam.step(1)
    np.testing.assert_allclose(
        abs(adam.net.params["ip"][0].data - start), 0.1, rtol=1e-3
    )  # Adam's first step
    with pytest.raises(ValueError, match="momentum: RMSProp takes no momentum"):
        caffe.RMSPropSolver(str(solver_file))


def test_random_numbers_begin_with_the_seed(solver_file):
    """Caffe seeds before it makes the nets; without random_seed the script's own seed counts."""
    text = solver_file.read_text()
    first = []
    for seed, own in (("random_seed: 5", 1), ("random_seed: 5", 2), ("", 7), ("", 7), ("random_seed: 6", 1)):
        solver_file.write_text(f"{text} {seed}")
        caffe.set_random_seed(own)
        first.append(caffe.get_solver(str(solver_file)).net.params["ip"][0].data.tolist())
    assert first[0] == first[1] and first[2] == first[3]
    assert first[0] != first[2] and first[0] != first[4]


def test_what_a_script_changes_in_a_solver(solver_file):
    solver = filled(caffe.get_solver(str(solver_file)))
    with pytest.raises(AttributeError):
        solver.net = solver.test_nets[0]
    solver.param.base_lr = 0
    before = solver.net.params["ip"][0].data.copy()
    solver.step(1)
    np.testing.assert_array_equal(solver.net.params["ip"][0].data, before)


def test_callbacks_and_memory_data(tmp_path):
    """set_input_arrays gives batch after batch; callbacks come around each iteration, and around each layer."""
    (tmp_path / "net.prototxt").write_text(
        'layer { name: "d" type: "MemoryData" top: "data" top: "label" '
        "memory_data_param { batch_size: 2 channels: 1 height: 1 width: 3 } }"
        + NET[NET.index('layer { name: "ip"') :]
    )
    (tmp_path / "s.prototxt").write_text(f'net: "{tmp_path}/net.prototxt" base_lr: 0 lr_policy: "fixed"')
    solver, seen = caffe.get_solver(str(tmp_path / "s.prototxt")), []
    rows = np.arange(12, dtype=np.float32).reshape(4, 1, 1, 3)
    solver.net.set_input_arrays(rows, np.arange(4, dtype=np.float32))
    solver.add_callback(
        lambda: seen.append("start"), lambda: seen.append(solver.net.blobs["data"].data[0, 0, 0, 0])
    )
    solver.step(3)
    assert seen == ["start", 0, "start", 6, "start", 0]
    around = []
    solver.net.before_forward(lambda i: around.append(i))
    solver.net.after_forward(lambda i: around.append(solver.net._layer_names[i]))
    solver.net.after_backward(lambda i: around.append(-i))
    solver.net.forward()
    solver.net.backward()
    assert around == [0, "d", 1, "ip", 2, "loss", -2, -1, 0]
    with pytest.raises(RuntimeError, match=r"data: expected float32 of \[n \* 2"):
        solver.net.set_input_arrays(rows[:3], np.arange(3, dtype=np.float32))


def test_the_file_s_weights_are_where_the_nets_begin(solver_file, tmp_path):
    first = filled(caffe.get_solver(str(solver_file)))
    first.net.save(str(tmp_path / "w.caffemodel"))
    solver_file.write_text(solver_file.read_text() + ' weights: "w.caffemodel"')
    second = caffe.get_solver(str(solver_file))
    np.testing.assert_array_equal(second.net.params["ip"][0].data, first.net.params["ip"][0].data)
    assert second.lr == pytest.approx(0.1)
    solver_file.write_text(solver_file.read_text().replace("w.caffemodel", "absent.caffemodel"))
    with pytest.raises((RuntimeError, OSError), match=r"absent\.caffemodel"):
        caffe.get_solver(str(solver_file))

"""Checks of values on a GPU that wait for nothing (cuffi/nets/stock/_late_checks.py)."""

import subprocess
import sys
from typing import Any

import pytest
import torch
from support.nets import draw, one_layer

from cuffi.nets.forks.regions import _limits_of_items
from cuffi.nets.stock import _late_checks as late_checks

POOL = 'type: "ROIPooling" roi_pooling_param { pooled_h: 2 pooled_w: 2 }'


class Computed:
    """An event of a GPU, for a machine without one."""

    def __init__(self, ready: bool):
        self.ready = ready

    def query(self) -> bool:
        return self.ready

    def synchronize(self) -> None:
        self.ready = True


@pytest.fixture
def note(monkeypatch):
    """Notes a check that is on its way: note(ready, value, message). Values from 0 on are wrong."""
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    late_checks._forget()

    def note(ready: bool, value: float, message: str):
        event: Any = Computed(ready)
        values = torch.tensor([-1.0, value])
        check = late_checks._Check(values, -2, 0, message)
        late_checks._copied.append(late_checks._Copied(event, values, [check]))
        return event

    yield note
    late_checks._forget()


def test_the_first_that_failed_is_raised_once_it_is_there(note):
    note(True, -0.5, "a")
    event = note(False, 0.5, "b")
    note(False, float("nan"), "c")
    late_checks.raise_if_refused()
    event.ready = True
    with pytest.raises(ValueError, match=r"b \(in an earlier call"):
        late_checks.raise_if_refused()
    late_checks.raise_if_refused()
    assert [copied.checks[0].message for copied in late_checks._copied] == ["c"]
    with pytest.raises(ValueError, match="c"):
        late_checks.raise_if_refused(wait=True)


def test_nothing_is_asked_while_a_graph_is_captured(note, monkeypatch):
    note(True, 1, "a")
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    late_checks.raise_if_refused()
    assert len(late_checks._copied) == 1


def test_a_net_raises_it_before_it_runs(note):
    net = one_layer(POOL, (1, 1, 4, 4), (1, 5))
    note(True, 1, "pool: an item")
    with pytest.raises(ValueError, match="pool: an item"):
        net(draw(1, 1, 4, 4), torch.zeros(1, 5))


def test_the_end_of_the_program_prints_the_rest(note, capsys):
    note(False, 1, "a")
    note(False, -1, "b")
    note(False, 1, "c")
    late_checks._print_the_rest()
    assert [line.partition(",")[0] for line in capsys.readouterr().err.splitlines()] == [
        "cuffi: a",
        "cuffi: c",
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_region_s_item_is_cut_to_a_whole_number(dtype):
    """-0.5 is item 0, as in Caffe; other values of a region are left as they are."""
    limits = _limits_of_items(3, dtype, torch.device("cpu"))
    inf, nan = float("inf"), float("nan")
    rows = torch.tensor([[i, -inf, 1e30, inf, -7] for i in (-0.5, 0, 2, 2.9, -1, 3, 1e30, nan)], dtype=dtype)
    inside = rows.clamp(*limits.rows)
    right = (inside[:, 0] > limits.low) & (inside[:, 0] < limits.high)
    assert right.tolist() == [True] * 4 + [False] * 4
    assert torch.equal(inside[:, 1:], rows[:, 1:])
    assert torch.equal(inside[:4], rows[:4])
    assert all(int(item) in range(3) for item in inside[:-1, 0].tolist())


@pytest.mark.gpu
@pytest.mark.parametrize("item", [2, -1, float("nan"), 1e30])
def test_a_wrong_item_on_a_gpu_is_told_by_the_next_call(item, monkeypatch):
    pytest.importorskip("torchvision")
    monkeypatch.setattr(late_checks, "_last_copy", 0.0)
    net, x = one_layer(POOL, (2, 1, 4, 4), (1, 5)).cuda(), draw(2, 1, 4, 4).float().cuda()
    right = torch.tensor([[1.0, 0, 0, 3, 3]]).cuda()
    wrong = right.clone()
    wrong[0, 0] = item
    net(x, wrong)
    torch.cuda.synchronize()
    with pytest.raises(ValueError, match="the item of a region is not one of 2"):
        net(x, right)
    assert net(x, right).shape == (1, 1, 2, 2)


@pytest.mark.gpu
def test_many_calls_are_checked_together():
    pytest.importorskip("torchvision")
    net, x = one_layer(POOL, (2, 1, 4, 4), (1, 5)).cuda(), draw(2, 1, 4, 4).float().cuda()
    regions = torch.zeros(1, 5).cuda()
    with pytest.raises(ValueError, match="the item of a region is not one of 2"):
        for call in range(100):
            regions[0, 0] = 2.0 * (call == 40)  # the same memory: what a check saw, it keeps
            net(x, regions)
        late_checks.raise_if_refused(wait=True)
    late_checks.raise_if_refused(wait=True)


@pytest.mark.gpu
def test_a_wrong_item_of_the_last_call_is_printed():
    pytest.importorskip("torchvision")
    program = f"""if 1:
        import torch
        from cuffi import caffe_net
        net = caffe_net('''input: "x" input_shape {{ dim: 2 dim: 1 dim: 4 dim: 4 }}
            input: "r" input_shape {{ dim: 1 dim: 5 }}
            layer {{ name: "L" bottom: "x" bottom: "r" top: "top" {POOL} }}''').cuda()
        net(torch.zeros(2, 1, 4, 4).cuda(), torch.full((1, 5), 7.0).cuda())"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "L: the item of a region is not one of 2" in ran.stderr

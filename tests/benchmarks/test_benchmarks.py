"""The layers' benchmarks run to their end, on small inputs and in two turns, because they run rarely otherwise."""

import dataclasses

import pytest
import torch
from conftest import DEVICES
from cuffi.depthwise_conv import cases

from benchmarks import (
    _cases,
    _machine,
    _make,
    _report,
    _timing,
    against_torchvision,
    build_one,
    depthwise,
    layer_cases,
)
from cuffi.backends import HOST

SHAPES = {"8x6 k3": ((2, 8, 6, 6), 3, 1, 1), "8x6 k3 s2": ((2, 8, 6, 6), 3, 2, 1)}
LINE = {"8x32 k4 causal": cases.arguments1d((1, 8, 32), 4, causal=True)}


@pytest.fixture(params=DEVICES)
def device(request, monkeypatch):
    planes = {name: cases.arguments(*shape) for name, shape in SHAPES.items()}
    small = [
        dataclasses.replace(case, bench=planes if case.name == "depthwise_conv2d" else LINE)
        for case in cases.CASES
        if case.bench
    ]

    def in_turns(timers, *_, **__):
        return _timing.Times({name: [timer(), timer()] for name, timer in timers.items()})

    monkeypatch.setattr(cases, "CASES", small)
    monkeypatch.setattr(cases, "BENCH", SHAPES)
    monkeypatch.setattr(_machine, "devices", lambda: [request.param])
    for module in (depthwise, layer_cases):
        monkeypatch.setattr(module, "in_turns", in_turns)
    monkeypatch.setattr(depthwise, "COMPILE_UNTIL", dict.fromkeys(depthwise.COMPILE_UNTIL, 0))
    return request.param


def measured(module, tmp_path):
    return module.measure(_report.Settings(quick=True, layer="depthwise_conv", out=tmp_path))


def test_depthwise_measures_each_shape_and_dtype(device, tmp_path):
    report = measured(depthwise, tmp_path)
    runs = 2 if device == _machine.GPU else 1
    assert len(report.rows) == runs * len(SHAPES) * len(depthwise.DTYPES[device])
    assert {row["shape"] for row in report.rows} == set(SHAPES)
    assert all(row["ours"] > 0 and row["torch last"] > 0 for row in report.rows)


def test_layer_cases_measure_every_case(device, tmp_path):
    rows = measured(layer_cases, tmp_path).rows
    assert {row["case"] for row in rows} == {*SHAPES, *LINE}
    assert len(rows) == 2 * 3 * len(layer_cases.DTYPES[device])


def test_layer_cases_leave_out_what_is_too_large_for_a_processor(monkeypatch, device, tmp_path):
    monkeypatch.setattr(layer_cases, "HOST_MOST", 2 * 8 * 6 * 6 - 1)
    report = measured(layer_cases, tmp_path)
    left_out = [note for note in report.notes if "left out" in note]
    assert len(left_out) == (len(SHAPES) if device == "cpu" else 0)
    assert {row["case"] for row in report.rows} == (set(LINE) if device == "cpu" else {*SHAPES, *LINE})


def test_one_backend_of_a_layer_is_built_outside_of_the_tree():
    assert build_one.our_build(BACKENDS=HOST.name, NVCC="") > 0


def test_what_is_built_follows_the_setting_of_make(monkeypatch):
    """With NVCC= in the environment make has no rule for CUDA, even if there is an nvcc."""
    monkeypatch.setenv("NVCC", "")
    assert not _make.has_nvcc()
    monkeypatch.setenv("NVCC", "/opt/nvcc")
    assert _make.nvcc() == "/opt/nvcc"


def test_the_comparison_with_torchvision_has_every_layer(monkeypatch, tmp_path):
    """No layer is left out because it is slower."""
    measured_layers = {row.layer for row in against_torchvision.ROWS}
    for folder in _cases.layers_here():
        assert any(name.startswith(folder.name) for name in measured_layers), folder.name
    monkeypatch.setattr(_machine.torch.cuda, "is_available", lambda: False)
    report = against_torchvision.measure(_report.Settings(quick=True, layer=None, out=tmp_path))
    assert not report.rows and "no GPU" in report.notes[0]


def test_the_comparison_with_torchvision_refuses_a_fast_wrong_answer():
    row = next(row for row in against_torchvision.ROWS if row.layer == "Permute")
    x = torch.randn(2, 3, 4, 5)
    contenders = {"ours": row.ours((x,)), "peer": row.theirs((x,))}
    against_torchvision.agree(contenders, (x,), 1e-6)
    with pytest.raises(RuntimeError, match="the tops differ"):
        against_torchvision.agree(contenders | {"peer": lambda x: x.flip(1)}, (x,), 1e-6)
    top, gradients = against_torchvision.once(
        contenders["ours"], (x.requires_grad_(),), torch.ones(2, 4, 5, 3), True
    )
    assert top.shape == (2, 4, 5, 3) and torch.equal(gradients[0], torch.ones_like(x))

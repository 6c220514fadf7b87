"""Errors for torch's tracers that cannot trace into a layer."""

import warnings

import pytest
import torch

from cuffi.base.tracing import explain_onnx, fx_node, refuse_script
from cuffi.runtime import CaffeRuntimeError


class Opaque(torch.nn.Module):
    def forward(self, x, *, scale=1):
        node = fx_node(self, "opaque", (x,), {"scale": scale})
        return x * scale if node is None else node


class Around(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Opaque()

    def forward(self, x):
        return self.inner(x + 1, scale=3)


def test_a_module_is_one_node_of_torch_fx():
    class Tracer(torch.fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    around = Around()
    graph = Tracer().trace(around)
    (call,) = [node for node in graph.nodes if node.op == "call_module"]
    assert (call.target, call.kwargs) == ("inner", {"scale": 3})
    x = torch.arange(3.0)
    assert torch.equal(torch.fx.GraphModule(around, graph)(x), (x + 1) * 3)


def test_what_is_not_traced_is_no_node():
    assert fx_node(Opaque(), "opaque", (torch.zeros(1),), {"scale": 2}) is None
    with pytest.raises(
        CaffeRuntimeError, match=r"^opaque: torch\.fx cannot look into it: trace a module that"
    ):
        fx_node(Opaque(), "opaque", [torch.zeros(1)])


def test_onnx_is_explained_within_an_export_alone(monkeypatch):
    operator = type("Operator", (), {"name": lambda self: "layers_foo::bar"})()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explain_onnx("foo", operator)
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
    with pytest.warns(
        UserWarning, match=r"foo: ONNX has no operator like layers_foo::bar\. .*register_custom_op"
    ):
        explain_onnx("foo", operator)


def test_script_is_refused_with_what_works_instead():
    with pytest.raises(CaffeRuntimeError, match=r"^foo: torch\.jit\.script cannot .*torch\.jit\.trace"):
        refuse_script("foo")

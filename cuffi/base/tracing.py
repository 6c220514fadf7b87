"""Nodes and errors for torch's tracers that cannot trace into a layer: torch.fx, torch.onnx and torch.jit.script."""

import warnings

import torch

from .errors import CaffeRuntimeError


def fx_node(module: torch.nn.Module, name: str, inputs, named=None) -> torch.fx.Proxy | None:
    """A torch.fx node for a module that the tracer cannot trace into; None if nothing is traced."""
    if type(inputs) is not tuple:  # *inputs of the traced module itself
        raise CaffeRuntimeError(f"{name}: torch.fx cannot look into it: trace a module that contains it")
    for value in (*inputs, *(named or {}).values()):
        if isinstance(value, torch.fx.Proxy):
            tracer = value.tracer
            return tracer.create_proxy("call_module", tracer.path_of_module(module), inputs, named or {})
    return None


def explain_onnx(layer: str, operator) -> None:
    """Warn in a traced ONNX export, before torch's own error, which does not say what to do."""
    if torch.onnx.is_in_onnx_export():
        name = operator.name()
        warnings.warn(
            f"{layer}: ONNX has no operator like {name}. torch.onnx.export(dynamo=False) needs a function that writes "
            f'it in others, torch.onnx.register_custom_op_symbolic("{name}", ...), or operator_export_type='
            "torch.onnx.OperatorExportTypes.ONNX_FALLTHROUGH, for a runtime that has it.",
            stacklevel=4,
        )


def refuse_script(name: str):
    """Raise the error for torch.jit.script, which compiles Python source and cannot take a library."""
    raise CaffeRuntimeError(
        f"{name}: torch.jit.script cannot take a layer; torch.jit.trace, torch.export and torch.compile can"
    )

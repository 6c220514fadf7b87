"""Calls that are traced instead of run, and errors for tracers that cannot trace into a layer."""

import contextlib
import threading
import warnings

import torch
from torch import Tensor

from .errors import CaffeRuntimeError

_current = threading.local()
_OF_TENSOR = Tensor.__torch_dispatch__


@contextlib.contextmanager
def without_launches():
    """In this thread launches do nothing: an operator's function computes shapes."""
    before, _current.launches = launches(), False
    try:
        yield
    finally:
        _current.launches = before


def launches() -> bool:
    """Do launches run in this thread?"""
    return getattr(_current, "launches", True)


def is_recorded(arguments) -> bool:
    """Must torch see this call as an operator?

    A tracer or a mode watches, or a tensor is of a subclass that has its own dispatch, such as a fake tensor.
    """
    if torch._C._is_tracing() or torch._C._len_torch_dispatch_stack() or traces_before_dispatch():
        return True
    return any(
        isinstance(a, torch.fx.Proxy)
        or (isinstance(a, Tensor) and type(a).__torch_dispatch__ is not _OF_TENSOR)
        for a in arguments
    )


def is_fake(value) -> bool:
    """Is it a tensor without data, for computing shapes?"""
    return isinstance(value, Tensor) and isinstance(value, torch._subclasses.FakeTensor)


def traces_before_dispatch() -> bool:
    """Does the tracer of make_fx(pre_dispatch=True) watch? torch does not list it among the dispatch modes."""
    if torch.compiler.is_dynamo_compiling():  # dynamo, which is no such tracer, cannot read the next line
        return False
    return torch._C._dispatch_tls_is_dispatch_key_included(torch._C.DispatchKey.PreDispatch)


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

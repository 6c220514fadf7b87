"""Write a net as ONNX, and compare every blob of the file with the net: the certificate."""

from __future__ import annotations

import contextlib
import copy
import importlib
import json
import logging
import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import torch
from torch import Tensor, nn

from ...base import CaffeRuntimeError, CaffeTypeError, dtype_name, path_of
from ...base.files import written_whole
from .apart import apart
from .choice import torch_types
from .python_layer import PythonLayer

PACKAGES = ("onnx", "onnxscript", "onnxruntime")

# The largest difference that counts as equal, relative to a blob's largest value.
TOLERANCE = 1e-5


@dataclass
class Certificate:
    """What the written file computed in onnxruntime, compared with the net, blob by blob."""

    path: str
    opset: int
    dynamic_batch: bool
    runtime: str
    blobs: list[dict] = field(
        default_factory=list
    )  # name, shape, difference: relative to the blob's largest value
    domains: list[str] = field(default_factory=list)  # domains of operators that are not ONNX's own

    @property
    def agrees(self) -> bool:
        """Is every blob equal to TOLERANCE, or about as near to the net in double precision as the net's own?"""
        return all(blob["difference"] <= TOLERANCE or _is_rounding(blob) for blob in self.blobs)

    def __str__(self) -> str:
        rows = [f"{b['difference']:.1e}  {b['name']} {b['shape']}{why(b)}" for b in self.blobs]
        verdict = "all blobs agree" if self.agrees else "NOT EQUAL"
        rounded = sum(blob["difference"] > TOLERANCE for blob in self.blobs) if self.agrees else 0
        but = f", but for float32's rounding in {rounded} of them" if rounded else ""
        last = f"{self.path}: {verdict} to {TOLERANCE:g}{but} ({self.runtime}, opset {self.opset})"
        return "\n".join([*rows, last])


def _is_rounding(blob: dict) -> bool:
    # Two ways of adding the same numbers are seldom equally lucky: of 40 pictures, one had a ratio of 8.
    return blob.get("file_to_double", math.inf) <= 10 * blob.get("net_to_double", 0.0) < math.inf


def why(blob: dict) -> str:
    """Behind a blob's difference: is it float32's rounding?"""
    if "file_to_double" not in blob:
        return ""
    file, net = blob["file_to_double"], blob["net_to_double"]
    return f" (from double precision: the file {file:.1e}, the net {net:.1e})"


def package(name: str, user: str):
    """The package, which `user` needs."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise CaffeRuntimeError(
            f"{user} needs the package {name}: pip install {' '.join(PACKAGES)}"
        ) from None


class _AllBlobs(nn.Module):
    """A net as a function of its inputs, in their order. Its outputs are all blobs that it computes."""

    def __init__(self, net, names: Sequence[str]):
        super().__init__()
        self.net, self.names = net, tuple(names)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        blobs = self.net(*inputs, blobs=self.names)
        return tuple(blobs[name] for name in self.names)


def to_onnx(net, path, *, dynamic_batch: bool = True) -> Certificate:
    """Write a CaffeNet as ONNX; `CaffeNet.to_onnx` says more."""
    for name in PACKAGES:
        package(name, "to_onnx")
    path = path_of(f"{net.path}: to_onnx: path", path)
    _refuse(net)
    with written_whole(path) as file, _prepared(net) as net:
        inputs, names = _inputs(net), _computed(net)
        model, certificate = _certified(net, path, names, inputs, dynamic_batch)
        if certificate.dynamic_batch and not certificate.agrees:
            # torch 2.13 drops the sum of a SoftmaxWithLoss, if the batch is free.
            model, certificate = _certified(net, path, names, inputs, False)
        _keep_outputs(model.graph, net.outputs)
        file.write(model.SerializeToString())
    with written_whole(f"{path}.json") as file:
        file.write(json.dumps(asdict(certificate) | {"agrees": certificate.agrees}, indent=1).encode())
    return certificate


def _keep_outputs(graph, names: list[str]) -> None:
    """Let the graph have these outputs, in their order. The others become values inside."""
    outputs = {output.name: output for output in list(graph.output)}
    del graph.output[:]
    graph.output.extend(outputs.pop(name) for name in names if name in outputs)
    graph.value_info.extend(outputs.values())


def _certified(net, path: str, names: list[str], inputs: dict[str, Tensor], free: bool):
    """(the model, whose outputs are all blobs; its certificate)."""
    program, is_dynamic = _exported(net, names, inputs, free)
    model, runtime = program.model_proto, package("onnxruntime", "to_onnx")
    certificate = Certificate(path, _opset(model), is_dynamic, f"onnxruntime {runtime.__version__}")
    certificate.domains = sorted({n.domain for n in _nodes(model) if n.domain not in ("", "ai.onnx")})
    _compare(net, names, inputs, model, certificate)
    return model, certificate


def _refuse(net) -> None:
    """Raise an error for a net that no ONNX file can hold, or whose numbers would be others there."""
    where = f"{net.path}: to_onnx"
    for step in net._phase(False).graph.steps:
        if why := _why_not(getattr(net, step.key), step.spec.type):
            raise CaffeRuntimeError(
                f"{where}: line {step.spec.line}: {step.spec.name!r} ({step.spec.type}): {why}"
            )
    for name, value in net.state_dict().items():
        if value.is_meta:
            raise CaffeRuntimeError(f"{where}: {name} is on the device meta, so it has no values")
        if value.is_floating_point() and value.dtype != torch.float32:
            raise CaffeTypeError(
                f"{where}: {name} is {dtype_name(value.dtype)}; the file's numbers are float32: call net.float() before"
            )


def _why_not(module: nn.Module, type_name: str) -> str:
    """Why no ONNX file can hold this layer, and what to do; or ''."""
    if isinstance(module, PythonLayer):
        return "it runs Python code, which no ONNX file can hold"
    if not any(hasattr(part, "graph_operator") for part in module.modules()):  # a CaffeModule
        return ""
    by_torch = set(torch_types())
    how = (
        f"native={{{type_name!r}: True}}"
        if type_name in by_torch
        else f"types={{{type_name!r}: your function}}"
    )
    return f"a ported layer, whose compiled code no ONNX file can hold. To compute it by torch: caffe_net(..., {how})"


@contextlib.contextmanager
def _prepared(net):
    """A twin of the net on the processor, in phase TEST, without gradients, autocast and the exporter's log."""
    levels = {log: log.level for log in map(logging.getLogger, ("torch", "onnx_ir", "onnxscript"))}
    for log in levels:
        log.setLevel(logging.CRITICAL)
    try:
        with apart(net) as twin, torch.autocast("cpu", enabled=False):
            if any(value.device.type not in ("cpu", "meta") for value in twin.state_dict().values()):
                twin = copy.deepcopy(twin).cpu()
            yield twin
    finally:
        for log, level in levels.items():
            log.setLevel(level)


def _inputs(net) -> dict[str, Tensor]:
    """Random inputs of the file's shapes."""
    random = torch.Generator().manual_seed(0)
    return {name: torch.rand(net.shapes[name], generator=random) for name in net.inputs}


def _computed(net) -> list[str]:
    """The blobs that the net computes, in order. Inputs are not among them."""
    graph = net.phase.graph
    return [name for name, value in graph.latest.items() if value not in graph.inputs.values()]


def _exported(net, names: list[str], inputs: dict[str, Tensor], dynamic: bool):
    """(torch's ONNXProgram, is the batch size free?). It is not if the net fixes it."""
    shapes = None
    if dynamic and all(value.dim() and value.shape[0] for value in inputs.values()):
        shapes = {"inputs": tuple({0: torch.export.Dim.DYNAMIC} for _ in inputs)}
    # A batch of 1 would be taken for a constant.
    given = {k: torch.cat([v, v]) if shapes and v.shape[0] == 1 else v for k, v in inputs.items()}
    try:
        return _export(net, names, given, shapes), shapes is not None
    except Exception as error:
        if shapes is None:
            where, cause = _culprit(net, inputs) or ("", error)
            raise CaffeRuntimeError(f"{net.path}: to_onnx: {where}{_reason(cause)}") from error
        return _exported(net, names, inputs, False)


def _culprit(net, inputs: dict[str, Tensor]) -> tuple[str, Exception] | None:
    """The first layer that cannot be exported alone, in words, and its error."""
    tried = set()
    for step in net.phase.graph.steps:
        module = net._modules.get(step.key)
        if module is None or not step.bottoms or (repr(module), len(step.bottoms)) in tried:
            continue
        tried.add((repr(module), len(step.bottoms)))
        bottoms = tuple(net.values_of(step.bottoms, inputs))
        try:
            _as_onnx(net, module, bottoms)
        except Exception as error:
            return f"line {step.spec.line}: {step.spec.name!r} ({step.spec.type}): ", error
    return None


def _export(net, names, inputs, shapes):
    program = _as_onnx(
        net,
        _AllBlobs(net, names),
        tuple(inputs.values()),
        input_names=list(inputs),
        output_names=list(names),
        dynamic_shapes=shapes,
    )
    _tidy(program.model.graph, names)
    return program


def _as_onnx(net, module: nn.Module, inputs: tuple[Tensor, ...], **options):
    """torch's ONNXProgram of a module of the net."""
    from ..forks import _boxes
    from ._onnx_operators import translations

    with warnings.catch_warnings(), _set(_boxes, "AS_ONE_OPERATOR", True):
        warnings.simplefilter("ignore")
        return torch.onnx.export(
            module, inputs, dynamo=True, custom_translation_table=translations(), verbose=False, **options
        )


def _tidy(graph, names: list[str]) -> None:
    """Rename inner values that have a blob's name: torch names values after its operators, such as `relu`.

    It also drops torch's notes on each node, which name folders of this machine.
    """
    outputs, taken = {id(value) for value in graph.outputs}, set(names)
    for node in graph:
        node.metadata_props.clear()
        for value in node.outputs:
            if value.name in taken and id(value) not in outputs:
                value.name = f"{value.name}__inside"


@contextlib.contextmanager
def _set(module, name: str, value):
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def _reason(error: BaseException) -> str:
    """The innermost cause's first line: torch's exporter wraps it in several of its own."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"


def _opset(model) -> int:
    return next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))


def _nodes(model) -> list:
    return [*model.graph.node, *(node for function in model.functions for node in function.node)]


def _compare(net, names: list[str], inputs: dict[str, Tensor], model, certificate: Certificate) -> None:
    """Fill in the certificate's blobs, for the file's batch and, if the batch is free, for two more items."""
    runtime = package("onnxruntime", "to_onnx")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    batches = [inputs]
    if certificate.dynamic_batch:
        batches.append({k: torch.cat([v, torch.rand_like(v[:1]), v[:1]]) for k, v in inputs.items()})
    calls = []
    for given in batches:
        found = session.run(names, {name: value.numpy() for name, value in given.items()})
        found = {name: torch.from_numpy(value) for name, value in zip(names, found, strict=True)}
        calls.append((given, found, net(blobs=names, **given)))
    for name in names:
        worst = max(_difference(found[name], wanted[name]) for _, found, wanted in calls)
        shape = list(calls[0][1][name].shape)
        certificate.blobs.append({"name": name, "shape": shape, "difference": worst})
    _look_into(net, [blob for blob in certificate.blobs if blob["difference"] > TOLERANCE], calls)


def _look_into(net, blobs: list[dict], calls) -> None:
    """How far the file's and the net's own numbers are from the net in double precision, for blobs that differ."""
    if not blobs:
        return
    wide = copy.deepcopy(net).double()
    names = [blob["name"] for blob in blobs]
    true = [wide(blobs=names, **{k: v.double() for k, v in given.items()}) for given, _, _ in calls]
    for blob in blobs:
        name = blob["name"]
        for key, place in (("file_to_double", 1), ("net_to_double", 2)):
            pairs = zip(calls, true, strict=True)
            blob[key] = max(_difference(call[place][name], values[name]) for call, values in pairs)


def _difference(ours: Tensor, wanted: Tensor) -> float:
    """The largest difference, relative to the largest finite value, if that is above 1.

    Infinity for another shape, and if a number is infinite or not a number in only one of them.
    """
    if ours.shape != wanted.shape:
        return float("inf")
    ours, wanted = ours.double().reshape(-1), wanted.double().reshape(-1)
    differs = (ours != wanted) & ~(ours.isnan() & wanted.isnan())
    if not differs.any():
        return 0.0
    worst, finite = (ours - wanted)[differs].abs().max(), wanted[wanted.isfinite()]
    if not worst.isfinite():
        return float("inf")
    return float(worst) / max(1.0, float(finite.abs().max()))

"""Write a net as ONNX, and compare every blob of the file with the net: the certificate."""

from __future__ import annotations

import contextlib
import importlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import torch
from torch import Tensor, nn

from .._files import written_whole
from .._runtime import CaffeRuntimeError, path_of

PACKAGES = ("onnx", "onnxscript", "onnxruntime")
# The largest difference that counts as equal, relative to a blob's largest value.
TOLERANCE = 1e-5


@dataclass
class Certificate:
    """What onnxruntime computed for the written file, compared with the net, blob by blob."""

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
        """Is every blob equal to TOLERANCE?"""
        return all(blob["difference"] <= TOLERANCE for blob in self.blobs)

    def __str__(self) -> str:
        rows = [f"{b['difference']:.1e}  {b['name']} {b['shape']}" for b in self.blobs]
        verdict = "all blobs agree" if self.agrees else "NOT EQUAL"
        return "\n".join(
            [*rows, f"{self.path}: {verdict} to {TOLERANCE:g} ({self.runtime}, opset {self.opset})"]
        )


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
    _, _, runtime = (_package(name) for name in PACKAGES)
    path, was = path_of(f"{net.path}: to_onnx: path", path), net.training
    net.eval()
    try:
        inputs = _inputs(net)
        names = _computed(net)
        program, is_dynamic = _exported(net, names, inputs, dynamic_batch)
        model = program.model_proto
        certificate = Certificate(path, _opset(model), is_dynamic, f"onnxruntime {runtime.__version__}")
        certificate.domains = sorted({n.domain for n in _nodes(model) if n.domain not in ("", "ai.onnx")})
        _compare(net, names, inputs, model, certificate)
    finally:
        net.train(was)
    outputs = set(net.outputs)
    kept = [output for output in model.graph.output if output.name in outputs]
    del model.graph.output[:]
    model.graph.output.extend(sorted(kept, key=lambda output: net.outputs.index(output.name)))
    with written_whole(path) as file:
        file.write(model.SerializeToString())
    with written_whole(f"{path}.json") as file:
        file.write(json.dumps(asdict(certificate) | {"agrees": certificate.agrees}, indent=1).encode())
    return certificate


def _package(name: str):
    try:
        return importlib.import_module(name)
    except ImportError:
        needed = " ".join(PACKAGES)
        raise CaffeRuntimeError(f"to_onnx needs the package {name}: pip install {needed}") from None


def _inputs(net) -> dict[str, Tensor]:
    """Random inputs of the file's shapes, on the net's device."""
    device = next((p.device for p in net.parameters()), torch.device("cpu"))
    random = torch.Generator().manual_seed(0)
    return {name: torch.rand(net.shapes[name], generator=random).to(device) for name in net.inputs}


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
            raise CaffeRuntimeError(f"{net.path}: to_onnx: {_reason(error)}") from error
        return _exported(net, names, inputs, False)


def _export(net, names, inputs, shapes):
    from ._onnx_operators import translations
    from .known import _boxes

    with warnings.catch_warnings(), _set(_boxes, "AS_ONE_OPERATOR", True):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            _AllBlobs(net, names).eval(),
            tuple(inputs.values()),
            dynamo=True,
            input_names=list(inputs),
            output_names=list(names),
            dynamic_shapes=shapes,
            custom_translation_table=translations(),
            verbose=False,
        )
    _keep_apart(program.model.graph, names)
    return program


def _keep_apart(graph, names: list[str]) -> None:
    """Rename inner values that have a blob's name: torch names values after its operators, such as `relu`."""
    outputs, taken = {id(value) for value in graph.outputs}, set(names)
    for node in graph:
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


def _reason(error: Exception) -> str:
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
    runtime = _package("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    batches = [inputs]
    if certificate.dynamic_batch:
        batches.append({k: torch.cat([v, torch.rand_like(v[:1]), v[:1]]) for k, v in inputs.items()})
    worst: dict[str, float] = {}
    for given in batches:
        found = session.run(list(names), {name: value.cpu().numpy() for name, value in given.items()})
        with torch.no_grad():
            wanted = net(blobs=names, **given)
        for name, value in zip(names, found, strict=True):
            worst[name] = max(worst.get(name, 0.0), _difference(torch.from_numpy(value), wanted[name].cpu()))
            if given is inputs:
                certificate.blobs.append({"name": name, "shape": list(value.shape)})
    for blob in certificate.blobs:
        blob["difference"] = worst[blob["name"]]


def _difference(ours: Tensor, wanted: Tensor) -> float:
    """The largest difference, relative to the largest finite value, if that is above 1.

    Infinity for another shape, and if a number is infinite or not a number in one of them alone.
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

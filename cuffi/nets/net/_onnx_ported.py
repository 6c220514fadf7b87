"""Ported layers in ONNX: nodes of a domain of ours, and what runs them.

A node's op_type is the layer's type in Caffe. Its inputs are the bottoms, then the parameter blobs; its outputs are the
tops. Attributes: `layer` (the folder), `parameter` (the layer's prototxt), `bottoms` (how many), `mode` and `varying`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

import numpy as np
import torch

from ...base import CaffeRuntimeError, CaffeValueError
from ...caffe_files.parameters import Parameters
from .registry import Folders, is_ported

PACKAGES = ("onnx", "onnxscript", "onnxruntime")
DOMAIN, VERSION = "cuffi", 1
ATTRIBUTES = {"layer": str, "parameter": str, "bottoms": int, "mode": str, "varying": str}


def package(name: str, user: str):
    """The package, which `user` needs."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise CaffeRuntimeError(
            f"{user} needs the package {name}: pip install {' '.join(PACKAGES)}"
        ) from None


def ported(net) -> dict[str, type]:
    """The classes of the ported layers that run in the net's phase, by type."""
    every = (module for step in net.phase.graph.steps for module in getattr(net, step.key).modules())
    return {module.type_name: type(module) for module in every if is_ported(module)}


def words_for(layers: dict[str, str]) -> str:
    """What runs a file with these ported layers: folders by type."""
    names = ", ".join(f"{type_name} ({folder})" for type_name, folder in layers.items())
    return (
        f"{names}: ported, in the domain {DOMAIN}, which onnxruntime does not know. "
        "cuffi.OnnxSession(file, layers=[...]) runs the file with the built layers"
    )


def translations(net) -> dict:
    """By torch's operator of each ported layer of the net: what makes its node."""
    return {kind.graph_operator.operator: functools.partial(_node, kind) for kind in ported(net).values()}


def _node(kind, bottoms, blobs, parameter, training, mode, varying):
    from onnxscript.values import Op, Opset

    tops = len(Parameters(kind.layer.folder).layer_parameter(kind.type_name, parameter).top)
    named = {"layer": kind.layer.name, "parameter": parameter, "bottoms": len(bottoms), "varying": varying}
    if mode:
        named["mode"] = mode
    found = Op(Opset(DOMAIN, VERSION), kind.type_name, _schema(kind.type_name, tops))(
        *bottoms, *blobs, **named
    )
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _schema(type_name: str, tops: int):
    from onnx.defs import OpSchema

    parameter = OpSchema.FormalParameter
    kinds = {str: OpSchema.AttrType.STRING, int: OpSchema.AttrType.INT}
    return OpSchema(
        type_name,
        DOMAIN,
        VERSION,
        inputs=[parameter("inputs", "T", param_option=OpSchema.FormalParameterOption.Variadic, min_arity=0)],
        outputs=[parameter(f"top{i}", "T") for i in range(tops)],
        type_constraints=[("T", ["tensor(float)", "tensor(double)"], "")],
        attributes=[OpSchema.Attribute(k, kinds[v], "", required=False) for k, v in ATTRIBUTES.items()],
    )


class OnnxSession:
    """Runs a file that `to_onnx` wrote, with the net's ported layers in it.

    onnxruntime computes what is ONNX's own, part by part, and the built layers compute the nodes between. It does not
    need the net's prototxt and weights.

    Args:
        file: a path, or an onnx.ModelProto.
        layers: folders of ported layers, as for `caffe_net`; or the layers' classes, by type.

    Raises:
        CaffeRuntimeError: a package is missing (onnx, onnxruntime).
        CaffeValueError: a layer of the file is not there.
    """

    def __init__(self, file, layers: Sequence | Mapping = ()):
        onnx, _ = (package(name, "OnnxSession") for name in ("onnx", "onnxruntime"))
        self.model = file if isinstance(file, onnx.ModelProto) else onnx.load(file)
        graph, find = self.model.graph, layers.get if isinstance(layers, Mapping) else _finder(layers)
        runs = [list(nodes) for _, nodes in groupby(graph.node, lambda node: node.domain == DOMAIN)]
        wanted, self._steps = {output.name for output in graph.output}, []
        direct = set(wanted)  # values that the session itself reads
        for nodes in reversed(runs):
            if nodes[0].domain == DOMAIN:
                parts = [_Ported(node, find) for node in nodes]
                direct |= _read(nodes)
            else:
                parts = [_Part(self.model, nodes, wanted)]
            self._steps = [*parts, *self._steps]
            wanted |= _read(nodes)
        constants = (one for one in graph.initializer if one.name in direct)
        self._constants = {one.name: onnx.numpy_helper.to_array(one) for one in constants}

    def run(self, names: Iterable[str] | None, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The outputs of these names, all if None; as onnxruntime's InferenceSession.run.

        Raises:
            CaffeValueError: an input is missing, or a name is no output.
        """
        graph, values = self.model.graph, self._constants | dict(inputs)
        outputs = [output.name for output in graph.output]
        names = outputs if names is None else list(names)
        if missing := [one.name for one in graph.input if one.name not in values]:
            raise CaffeValueError(f"OnnxSession: inputs are missing: {', '.join(missing)}")
        if strange := [name for name in names if name not in outputs]:
            raise CaffeValueError(
                f"OnnxSession: no outputs: {', '.join(strange)}. There are: {', '.join(outputs)}"
            )
        for step in self._steps:
            step(values)
        return [values[name] for name in names]


class _Part:
    """Nodes of ONNX's own, run by onnxruntime."""

    def __init__(self, model, nodes, wanted):
        import onnxruntime

        if len(nodes) < len(model.graph.node):
            model = _cut(model, nodes, wanted)
        self.inputs, self.outputs = (
            [value.name for value in v] for v in (model.graph.input, model.graph.output)
        )
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def __call__(self, values: dict) -> None:
        given = {name: values[name] for name in self.inputs}
        values.update(zip(self.outputs, self.session.run(self.outputs, given), strict=True))


def _cut(model, nodes, wanted: set[str]):
    """A model of these nodes, whose outputs are the wanted ones."""
    from onnx import helper

    graph, read, made = model.graph, _read(nodes), [name for node in nodes for name in node.output]
    kinds = {value.name: value for value in (*graph.input, *graph.value_info, *graph.output)}
    constants = [one for one in graph.initializer if one.name in read]
    inputs = sorted(read - {one.name for one in constants} - set(made))
    ends = ([kinds[name] for name in names] for names in (inputs, [name for name in made if name in wanted]))
    return helper.make_model(
        helper.make_graph(nodes, graph.name, *ends, constants),
        opset_imports=model.opset_import,
        functions=model.functions,
        ir_version=model.ir_version,
    )


class _Ported:
    """A node of a ported layer, run by its library."""

    def __init__(self, node, find: Callable):
        from onnx import helper

        said = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        said = {name: value.decode() if isinstance(value, bytes) else value for name, value in said.items()}
        kind = find(node.op_type)
        if kind is None:
            raise CaffeValueError(
                f"OnnxSession: no layer of type {node.op_type!r} is here; its folder was {said['layer']!r}. Say in "
                "which folder that one lies: OnnxSession(file, layers=[...])"
            )
        self.operator = kind.graph_operator.operator
        self.how = said["parameter"], False, said.get("mode"), said["varying"]
        self.bottoms, self.inputs, self.outputs = said["bottoms"], list(node.input), list(node.output)

    def __call__(self, values: dict) -> None:
        given = [torch.tensor(values[name]) for name in self.inputs]
        with torch.no_grad():
            tops = self.operator(given[: self.bottoms], given[self.bottoms :], *self.how)
        values.update(zip(self.outputs, (top.numpy() for top in tops), strict=True))


def _finder(layers: Sequence) -> Callable:
    """From a type to its module class, or None."""
    folders = Folders(layers)

    def find(type_name: str):
        found = folders.find(type_name)
        return found and found.module_class()

    return find


def _read(nodes) -> set[str]:
    """The values that nodes read, with those that the graphs within them read from outside."""
    names = {name for node in nodes for name in node.input if name}
    inner = [a for node in nodes for a in node.attribute]
    for graph in [a.g for a in inner if a.HasField("g")] + [g for a in inner for g in a.graphs]:
        own = {value.name for value in (*graph.input, *graph.initializer)}
        names |= _read(graph.node) - own - {name for node in graph.node for name in node.output}
    return names

"""Which layer types a prototxt needs. `make net` asks this before it ports and builds."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

from ...base import CaffeValueError
from ...caffe_files.parameters import Unknown
from ...caffe_files.prototxt import parse
from ...caffe_files.upgrade import upgraded
from ..stock import stock_class
from .builder import read_net
from .choice import NO_COMPUTATION, of_forks, torch_types, why_misfit
from .graph import Spec
from .inputs import is_data
from .messages import layer_parameter
from .phases import State, included


@dataclass
class Need:
    """How a net uses a layer type.

    Attributes:
        fields: fields of its layers that only a fork's type has, and that change the result. None: the stock type
            computes them.
        phases: the phases in which the net has such a layer.
    """

    fields: list[Unknown] | None = None
    phases: set[str] = field(default_factory=set)


def needs(
    prototxt,
    replace: dict | None = None,
    ignore: Sequence[str] = (),
    states: Sequence[State] = (),
    own: Callable[[list[str]], Container[str]] = lambda types: (),
) -> dict[str, Need]:
    """The needs of the layers that run in any of these states, by type. No states: all layers.

    Args:
        own: decides which types without bottoms are not inputs.
    """
    text, path = read_net(prototxt, replace)
    root = parse(text, path)
    states = [state.over(root.node("state")) for state in states]
    specs = [Spec.of(node) for node in upgraded(root, path)]
    first = dict.fromkeys(s.type for s in specs if not s.bottoms and s.type and not is_data(s.type))
    sources = own([name for name in first if name not in torch_types()])
    found: dict[str, Need] = {}
    for spec in specs:
        phases = {state.phase for state in states if included(spec.node, state)}
        computes = spec.bottoms or spec.type == "Parameter" or spec.type in sources
        if computes and spec.type not in (*NO_COMPUTATION, "Python") and (phases or not states):
            need = found.setdefault(spec.type, Need())
            need.phases |= phases
            fields = _fields(spec, ignore)
            need.fields = need.fields if fields is None else [*(need.fields or []), *fields]
    return found


def _fields(spec: Spec, ignore: Sequence[str]) -> list[Unknown] | None:
    """The fields for which a layer needs a fork's type; None if it needs none.

    A layer with more or fewer bottoms or tops than the stock type accepts also needs one.
    """
    kind = stock_class(spec.type)
    if kind is None:
        return []
    try:
        _, unknown = layer_parameter(spec.node)
    except CaffeValueError:  # the error is raised when the net is built
        return None
    strange, _ = of_forks(kind, unknown, ignore)
    return strange if strange or why_misfit(kind, spec) else None

"""caffe.NetSpec, caffe.layers and caffe.params: write a prototxt in Python.

n = NetSpec()
n.data, n.label = L.Data(source="lmdb", backend=P.Data.LMDB, batch_size=64, ntop=2)
n.conv1 = L.Convolution(n.data, kernel_size=5, num_output=20, weight_filler=dict(type="xavier"))
n.loss = L.SoftmaxWithLoss(n.conv1, n.label)
print(n.to_proto())
"""

from __future__ import annotations

import warnings
from collections import Counter, OrderedDict

from ...base import CaffeTypeError, CaffeValueError
from ...caffe_files.parameters import SLIP, did_you_mean
from ..net.choice import torch_types
from .proto import caffe_pb2

# The types without a module here: those that make or write data, and Split, which torch does not need.
DATA_TYPES = ("Data", "DummyData", "HDF5Data", "HDF5Output", "ImageData", "Input", "MemoryData", "Python", "Split",
              "WindowData")  # fmt: skip
# The field of each type in LayerParameter.
_FIELDS = {
    field.message_type.name.removesuffix("Parameter"): field.name
    for field in caffe_pb2.LayerParameter.DESCRIPTOR.fields
    if field.message_type is not None and field.name.endswith("_param")
}


def assign_proto(proto, name: str, value) -> None:
    """Set a field: a dict is a message, a list is a repeated field; one value of a repeated field is a list of one."""
    if name not in proto.DESCRIPTOR.fields_by_name:
        raise AttributeError(f"{proto.DESCRIPTOR.name} has no field {name!r}")
    field = proto.DESCRIPTOR.fields_by_name[name]
    if field.is_repeated and not isinstance(value, list | tuple):
        value = [value]
    place = getattr(proto, name)
    if isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, dict):
                _fill(place.add(), item)
            else:
                place.append(item)
    elif isinstance(value, dict):
        place.SetInParent()
        _fill(place, value)
    elif field.message_type is not None:
        place.CopyFrom(value)
    else:
        setattr(proto, name, value)


def _fill(message, values: dict) -> None:
    for name, value in values.items():
        assign_proto(message, name, value)


class Top:
    """One of a layer's tops."""

    def __init__(self, fn: Function, n: int):
        self.fn, self.n = fn, n

    def to_proto(self):
        """The NetParameter of all layers that this top needs."""
        return to_proto(self)


class Function:
    """A layer with its bottoms and parameters."""

    def __init__(self, type_name: str, inputs: tuple, params: dict):
        self.type = self.type_name = type_name
        self.inputs, self.params = inputs, dict(params)
        for i, top in enumerate(inputs):
            if not isinstance(top, Top):
                raise CaffeTypeError(f"{type_name} input {i} is not a Top (type is {type(top)})")
        self.ntop, self.in_place = self.params.pop("ntop", 1), self.params.pop("in_place", False)
        self.fn = self  # a layer without tops is returned itself
        self.tops = tuple(Top(self, n) for n in range(self.ntop))


class _Net:
    """Names of tops and layers, while a NetParameter is written."""

    def __init__(self, names: dict[Top | Function, str]):
        self.names, self.counts, self.layers = dict(names), Counter(), OrderedDict()

    def top(self, top: Top) -> str:
        if top.fn.in_place:
            return self.layers[top.fn].top[top.n]
        if top not in self.names:
            self.counts[top.fn.type_name] += 1
            self.names[top] = top.fn.type_name + str(self.counts[top.fn.type_name])
        return self.names[top]

    def add(self, fn: Function) -> None:
        """The layer, after those that it needs."""
        if fn in self.layers:
            return
        for top in fn.inputs:
            self.add(top.fn)
        layer = caffe_pb2.LayerParameter(type=fn.type_name)
        layer.bottom.extend(self.top(top) for top in fn.inputs)
        layer.top.extend(layer.bottom if fn.in_place else (self.top(top) for top in fn.tops))
        self.layers[fn] = layer
        named = next((self.names[one] for one in (fn, *fn.tops) if one in self.names), None)
        if named is None:
            self.counts[fn.type_name] += 1
            named = fn.type_name + str(self.counts[fn.type_name])
        layer.name = fn.params.get("name", named)
        own = _FIELDS.get(fn.type_name)
        for name, value in fn.params.items():
            inside = own and name in getattr(layer, own).DESCRIPTOR.fields_by_name
            try:
                assign_proto(
                    getattr(layer, own) if inside and not name.endswith("param") else layer, name, value
                )
            except (AttributeError, TypeError, ValueError) as error:
                why = _why_not(fn.type_name, name, value, error)
                raise CaffeValueError(f"{layer.name!r} ({fn.type_name}): {why}") from None
        if fn.type_name not in known_types() and (near := did_you_mean(fn.type_name, known_types(), SLIP)):
            warnings.warn(f"{layer.name!r}: no type {fn.type_name!r} here{near}", stacklevel=4)


def known_types() -> set[str]:
    """The types of stock Caffe and of forks that there are here."""
    return {*torch_types(), *DATA_TYPES, *_FIELDS}


def _why_not(type_name: str, name: str, value, error: Exception) -> str:
    """Words for a field that cannot be set."""
    if type_name not in known_types() and (near := did_you_mean(type_name, known_types())):
        return f"{name}: no type {type_name!r} here{near}"
    own = getattr(caffe_pb2.LayerParameter(), _FIELDS.get(type_name, ""), None)
    of_type = own.DESCRIPTOR.fields_by_name if own is not None else {}
    known = [*of_type, *caffe_pb2.LayerParameter.DESCRIPTOR.fields_by_name]
    if name not in known:
        nor = f", nor has {own.DESCRIPTOR.name}" if own is not None else ""
        return f"{name}: LayerParameter has no field {name!r}{nor}{did_you_mean(name, known)}"
    enum = of_type[name].enum_type if name in of_type else None
    if enum is not None and isinstance(value, int | str):
        names = ", ".join(f"P.{type_name}.{one.name}" for one in enum.values)
        return f"{name}: {value!r} is none of {names}"
    return f"{name}: {error}"


def _written(tops, names: dict[Top | Function, str]):
    net = _Net(names)
    for top in tops:
        net.add(top.fn)
    return caffe_pb2.NetParameter(layer=net.layers.values())


def to_proto(*tops: Top):
    """The NetParameter of all layers that these tops need."""
    return _written(tops, {})


class NetSpec:
    """Tops by name; `to_proto()` gives the NetParameter, with the layers named by their tops."""

    tops: OrderedDict[str, Top]

    def __init__(self):
        super().__setattr__("tops", OrderedDict())

    def __setattr__(self, name: str, value) -> None:
        self.tops[name] = value

    def __getattr__(self, name: str) -> Top:
        if name not in self.tops:
            raise AttributeError(f"NetSpec has no top {name!r}. There are: {', '.join(self.tops) or 'none'}")
        return self.tops[name]

    __setitem__ = __setattr__

    def __getitem__(self, name: str) -> Top:
        return self.__getattr__(name)

    def __delitem__(self, name: str) -> None:
        del self.tops[name]

    __delattr__ = __delitem__

    def keys(self):
        """The names of the tops."""
        return self.tops.keys()

    def vals(self):
        """The tops."""
        return self.tops.values()

    def update(self, other) -> None:
        """Take the tops of a dict, or of pairs of name and top."""
        self.tops.update(other.items() if isinstance(other, dict) else other)

    def to_proto(self):
        """The NetParameter of what the tops are made by, with the layers named by their tops."""
        names: dict[Top | Function, str] = {top: name for name, top in self.tops.items()}
        return _written(self.tops.values(), names)


class Layers:
    """caffe.layers: `L.Convolution(bottom, num_output=20)`, any type by its name."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)

        def layer(*bottoms, **params):
            fn = Function(name, bottoms, params)
            return fn.tops[0] if len(fn.tops) == 1 else fn.tops or fn

        return layer


class _Enums:
    def __init__(self, message):
        self._message = message

    def __getattr__(self, name: str) -> int:
        if name.startswith("__") or hasattr(self._message, name):
            return getattr(self._message, name)
        of = self._message.DESCRIPTOR
        names = [value.name for enum in of.enum_types for value in enum.values]
        kind = of.name.removesuffix("Parameter")
        raise AttributeError(
            f"caffe.params.{kind} has no {name!r}{did_you_mean(name, names)} There are: {', '.join(names)}"
        )


class Parameters:
    """caffe.params: `P.Pooling.MAX`, the enums of a type's parameters."""

    def __getattr__(self, name: str):
        if (message := getattr(caffe_pb2, name + "Parameter", None)) is None:
            names = [one.removesuffix("Parameter") for one in dir(caffe_pb2) if one.endswith("Parameter")]
            raise AttributeError(f"caffe.params: no {name}Parameter{did_you_mean(name, names)}")
        return _Enums(message)


layers, params = Layers(), Parameters()

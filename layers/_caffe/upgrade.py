"""Convert Caffe's older formats to today's: V1, `layers { type: RELU }`, and V0, `layers { layer { type: "relu" } }`.

It works on trees of the text, so that every field keeps its line number.
"""

from __future__ import annotations

from .._runtime import CaffeValueError
from .prototxt import Node, quoted

# Types of V1's enumeration whose names do not follow from the enumerator's spelling.
V1_TYPES = {
    "SOFTMAX_LOSS": "SoftmaxWithLoss",
    "HDF5_DATA": "HDF5Data",
    "HDF5_OUTPUT": "HDF5Output",
    "BNLL": "BNLL",
    "LRN": "LRN",
    "MVN": "MVN",
    "RELU": "ReLU",
    "PRELU": "PReLU",
    "ELU": "ELU",
    "TANH": "TanH",
    "ABSVAL": "AbsVal",
    "ARGMAX": "ArgMax",
    "BN": "BN",
    "ROIPOOLING": "ROIPooling",
}

# Types of V0 that are not V1's in lower case.
V0_TYPES = {"conv": "CONVOLUTION", "images": "IMAGE_DATA", "innerproduct": "INNER_PRODUCT", "pool": "POOLING"}

# In a V0 layer the fields of all types are side by side. By V0 field and type: today's message and field.
V0_FIELDS = {
    "num_output": {"conv": "convolution_param", "innerproduct": "inner_product_param"},
    "biasterm": {
        "conv": "convolution_param bias_term",
        "innerproduct": "inner_product_param bias_term",
    },
    "weight_filler": {"conv": "convolution_param", "innerproduct": "inner_product_param"},
    "bias_filler": {"conv": "convolution_param", "innerproduct": "inner_product_param"},
    "pad": {"conv": "convolution_param", "pool": "pooling_param"},
    "kernelsize": {"conv": "convolution_param kernel_size", "pool": "pooling_param kernel_size"},
    "group": {"conv": "convolution_param"},
    "stride": {"conv": "convolution_param", "pool": "pooling_param"},
    "pool": {"pool": "pooling_param"},
    "dropout_ratio": {"dropout": "dropout_param"},
    "local_size": {"lrn": "lrn_param"},
    "alpha": {"lrn": "lrn_param"},
    "beta": {"lrn": "lrn_param"},
    "k": {"lrn": "lrn_param"},
    "concat_dim": {"concat": "concat_param"},
}
_V0_DATA = ("data", "images", "window_data", "hdf5_data", "hdf5_output", "infogain_loss")
_V1_LISTS = ("type", "param", "blob_share_mode", "blobs_lr", "weight_decay", "layer")


def upgraded(net: Node, path) -> list[Node]:
    """The layers of a net of any format, as trees of today's LayerParameter."""
    new, old = net.nodes("layer"), net.nodes("layers")
    if new and old:
        raise CaffeValueError(
            f"{path}, line {max(new[0].line, old[0].line)}: `layer` and `layers` in one file are two formats"
        )
    if not old:
        return new
    if any(layer.has("layer") for layer in old):
        return [_renamed(layer, path) for layer in _padded([_from_v0(layer, path) for layer in old], path)]
    return [_renamed(layer, path) for layer in old]


def v2_type(word: str) -> str:
    """Today's name of a V1 type. A fork's enumerator is converted by its spelling: SMOOTH_L1_LOSS, SmoothL1Loss."""
    if not word.isupper():
        return word
    return V1_TYPES.get(word, "".join(part.capitalize() for part in word.split("_")))


def _renamed(layer: Node, path) -> Node:
    """Convert a V1 layer, which has lists of learning rates."""
    new = layer.without(*_V1_LISTS)
    if not layer.has("type"):
        raise CaffeValueError(f"{path}, line {layer.line}: a layer without a type")
    new.add("type", quoted(v2_type(layer.value("type"))))
    lists = {
        "name": [quoted(v) for v in layer.values("param")],
        "lr_mult": layer.values("blobs_lr"),
        "decay_mult": layer.values("weight_decay"),
        "share_mode": layer.values("blob_share_mode"),
    }
    specs = [Node(layer.line) for _ in range(max(map(len, lists.values())))]
    for name, values in lists.items():
        for spec, value in zip(specs, values, strict=False):
            spec.add(name, value)
    for spec in specs:
        new.add("param", spec)
    return new


def _from_v0(connection: Node, path) -> Node:
    """Convert a V0 layer to V1. A layer of type 'padding', which V1 does not have, keeps its type."""
    inner = connection.node("layer")
    if inner is None:
        raise CaffeValueError(
            f"{path}, line {connection.line}: `layers` with and without `layer` in one file"
        )
    kind = inner.value("type")
    new = Node(connection.line)
    new.fields += [f for f in connection.fields if f.name in ("bottom", "top")]
    new.fields += [f for f in inner.fields if f.name in ("name", "blobs_lr", "weight_decay", "blobs")]
    new.add("type", kind if kind == "padding" else V0_TYPES.get(kind, kind.upper()))
    messages: dict[str, Node] = {}
    for entry in inner.fields:
        if entry.name in ("name", "type", "blobs_lr", "weight_decay", "blobs") or kind in _V0_DATA:
            continue
        if kind == "padding":
            new.fields.append(entry)
            continue
        where = V0_FIELDS.get(entry.name, {}).get(kind)
        if where is None:
            raise CaffeValueError(
                f"{path}, line {entry.line}: a layer of type {kind!r} of Caffe's first format has no {entry.name!r}"
            )
        message, _, field = where.partition(" ")
        messages.setdefault(message, Node(entry.line)).fields.append(
            type(entry)(field or entry.name, entry.value, entry.line)
        )
    for name, message in messages.items():
        new.add(name, message)
    return new


def _padded(layers: list[Node], path) -> list[Node]:
    """Remove the `padding` layers of 2013. The convolution or pooling after each gets its pad."""
    pads = {layer.value("top"): layer for layer in layers if layer.value("type") == "padding"}
    kept = []
    for layer in layers:
        if layer.value("type") == "padding":
            continue
        padding = pads.get(layer.value("bottom"))
        if padding is not None:
            name = {"CONVOLUTION": "convolution_param", "POOLING": "pooling_param"}.get(layer.value("type"))
            if name is None:
                raise CaffeValueError(
                    f"{path}, line {padding.line}: padding before a layer of type {layer.value('type')!r}"
                )
            message = layer.node(name)
            message.fields = [f for f in message.fields if f.name != "pad"]
            message.add("pad", padding.value("pad", "0"))
            for entry in layer.fields:
                if entry.name == "bottom":
                    entry.value = quoted(padding.value("bottom"))
        kept.append(layer)
    return kept

"""Convert Caffe's older formats to today's: V1, `layers { type: RELU }`, and V0, `layers { layer { type: "relu" } }`.

It works on trees of the text, so that every field keeps its line number.
"""

from __future__ import annotations

from ..base import CaffeValueError
from .prototxt import Field, Node, number, quoted

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

_CONV, _DENSE, _POOL = "convolution_param", "inner_product_param", "pooling_param"
_SOURCES = {
    kind: f"{name}_param"
    for kind, name in (
        ("data", "data"),
        ("hdf5_data", "hdf5_data"),
        ("images", "image_data"),
        ("window_data", "window_data"),
    )
}
_BOTH = {"conv": _CONV, "innerproduct": _DENSE}
_WINDOWS = {"conv": _CONV, "pool": _POOL}
_WINDOW, _IMAGES = {"window_data": "window_data_param"}, {"images": "image_data_param"}
_LRN = {"lrn": "lrn_param"}
# In a V0 layer the fields of all types are side by side. For each field: its name today, and its message by type (""
# for any type). Fields that no type has are left out. Caffe also leaves out a field of another type.
V0_FIELDS = {
    "num_output": ("", _BOTH), "biasterm": ("bias_term", _BOTH), "weight_filler": ("", _BOTH),
    "bias_filler": ("", _BOTH),
    "pad": ("", _WINDOWS), "kernelsize": ("kernel_size", _WINDOWS), "stride": ("", _WINDOWS),
    "group": ("", {"conv": _CONV}), "pool": ("", {"pool": _POOL}), "dropout_ratio": ("", {"dropout": "dropout_param"}),
    "local_size": ("", _LRN), "alpha": ("", _LRN), "beta": ("", _LRN), "k": ("", _LRN),
    "source": ("", _SOURCES | {"infogain_loss": "infogain_loss_param"}), "batchsize": ("batch_size", _SOURCES),
    "scale": ("", {"": "transform_param"}), "meanfile": ("mean_file", {"": "transform_param"}),
    "cropsize": ("crop_size", {"": "transform_param"}), "mirror": ("", {"": "transform_param"}),
    "rand_skip": ("", {"data": "data_param"} | _IMAGES), "shuffle_images": ("shuffle", _IMAGES),
    "new_height": ("", _IMAGES), "new_width": ("", _IMAGES), "concat_dim": ("", {"concat": "concat_param"}),
    "det_fg_threshold": ("fg_threshold", _WINDOW), "det_bg_threshold": ("bg_threshold", _WINDOW),
    "det_fg_fraction": ("fg_fraction", _WINDOW), "det_context_pad": ("context_pad", _WINDOW),
    "det_crop_mode": ("crop_mode", _WINDOW), "new_num": ("", {}), "new_channels": ("", {}),
    "hdf5_output_param": ("", {}),
}  # fmt: skip
_V0_SAME = ("name", "blobs_lr", "weight_decay", "blobs")  # as in V1
_V1_NUMBERS = {"blobs_lr": "lr_mult", "weight_decay": "decay_mult"}
_V1_WORDS = {"param": "name", "blob_share_mode": "share_mode"}


def upgraded(net: Node, path, notes: list[str] | None = None) -> list[Node]:
    """The layers of a net of any format, as trees of today's LayerParameter.

    Args:
        notes: gets a line for each field that is ignored, as in Caffe.
    """
    layers, old = net.nodes("layer"), net.nodes("layers")
    if any(layer.has("layer") for layer in old):
        notes = [] if notes is None else notes
        notes += [
            f"line {one.line}: `layer` beside Caffe's first format is ignored, as in Caffe" for one in layers
        ]
        layers = []
        old = [_from_v0(layer, path, notes) for layer in _padded(old, path)]
    if layers and old:
        raise CaffeValueError(
            f"{path}, line {max(layers[0].line, old[0].line)}: `layer` and `layers` in one file are two formats"
        )
    return [_statistics_frozen(layer) for layer in layers or [_renamed(layer, path) for layer in old]]


def v2_type(word: str) -> str:
    """Today's name of a V1 type. A fork's enumerator is converted by its spelling: SMOOTH_L1_LOSS, SmoothL1Loss."""
    if not word.isupper():
        return word
    return V1_TYPES.get(word, "".join(part.capitalize() for part in word.split("_")))


def _renamed(layer: Node, path) -> Node:
    """Convert a V1 layer, which has lists of learning rates."""
    if not layer.has("type"):
        raise CaffeValueError(f"{path}, line {layer.line}: a layer without a type")
    new = Node(layer.line, path=layer.path)
    columns: dict[str, list[Field]] = {}
    for entry in layer.fields:
        if entry.name == "type":
            new.fields.append(Field("type", quoted(v2_type(layer.value("type"))), entry.line))
        elif entry.name in _V1_NUMBERS or entry.name in _V1_WORDS:
            columns.setdefault(entry.name, []).append(_of_list(entry, path))
        else:
            new.fields.append(entry)
    for i in range(max(map(len, columns.values()), default=0)):
        fields = [columns[name][i] for name in (*_V1_WORDS, *_V1_NUMBERS) if i < len(columns.get(name, ()))]
        fields.sort(key=lambda field: field.line)
        new.fields.append(Field("param", Node(fields[0].line, fields, layer.path), fields[0].line))
    new.fields.sort(key=lambda field: field.line)  # so that errors name the lines of the file
    return new


def _of_list(entry: Field, path) -> Field:
    """An entry of one of V1's lists as the field of a ParamSpec."""
    if isinstance(entry.value, Node):
        hint = ". `param { ... }` is of today's format, `layer { ... }`" if entry.name == "param" else ""
        wrong = f"{entry.name}: expected a value, got a message in braces{hint}"
        raise CaffeValueError(f"{path}, line {entry.line}: {wrong}")
    if entry.name in _V1_NUMBERS:
        try:
            number(entry.value)
        except ValueError:
            raise CaffeValueError(
                f"{path}, line {entry.line}: {entry.name}: expected a number, got {entry.value[:40]}"
            ) from None
    elif entry.name == "param" and entry.value[0] not in "'\"":
        raise CaffeValueError(f"{path}, line {entry.line}: param: expected a string, got {entry.value[:40]}")
    return Field((_V1_NUMBERS | _V1_WORDS)[entry.name], entry.value, entry.line)


def _statistics_frozen(layer: Node) -> Node:
    """A BatchNorm with three `param`, as in 2015, does not train its blobs, whatever the multipliers are."""
    params = layer.nodes("param")
    if len(params) != 3 or layer.value("type") != "BatchNorm":
        return layer
    frozen = layer.without("param")
    for param in params:
        fields = [*param.without("lr_mult", "decay_mult").fields]
        fields += [Field(name, "0", param.line) for name in ("lr_mult", "decay_mult")]
        frozen.fields.append(Field("param", Node(param.line, fields, layer.path), param.line))
    frozen.fields.sort(key=lambda field: field.line)
    return frozen


def _from_v0(connection: Node, path, notes: list[str]) -> Node:
    """Convert a V0 layer to V1."""
    inner = connection.nodes("layer")[0]
    kind = inner.value("type")
    new = Node(
        connection.line, [f for f in connection.fields if f.name in ("bottom", "top")], connection.path
    )
    ignored = [f for f in connection.fields if f.name not in ("bottom", "top", "layer")]
    messages: dict[str, Node] = {}
    for entry in inner.fields:
        if entry.name == "type":
            new.fields.append(Field("type", V0_TYPES.get(kind, kind.upper()), entry.line))
        elif entry.name in _V0_SAME:
            new.fields.append(entry)
        elif entry.name not in V0_FIELDS:
            raise CaffeValueError(
                f"{path}, line {entry.line}: a layer of Caffe's first format has no {entry.name!r}"
            )
        else:
            field, places = V0_FIELDS[entry.name]
            message = places.get(kind, places.get(""))
            if message is None:
                ignored.append(entry)
                continue
            if message not in messages:
                messages[message] = Node(entry.line, path=connection.path)
                new.fields.append(Field(message, messages[message], entry.line))
            messages[message].fields.append(Field(field or entry.name, entry.value, entry.line))
    notes += [f"line {f.line}: {f.name} of a layer of type {kind!r} is ignored, as in Caffe" for f in ignored]
    new.fields.sort(key=lambda field: field.line)
    return new


def _padded(layers: list[Node], path) -> list[Node]:
    """Remove the `padding` layers of 2013. The convolution or pooling after each gets its pad."""
    kept, paddings = [], {}  # the padding that last made a blob, or None, by blob
    for layer in layers:
        inner = layer.node("layer")
        if inner is None:
            raise CaffeValueError(f"{path}, line {layer.line}: `layers` with and without `layer` in one file")
        found = [padding for bottom in layer.values("bottom") if (padding := paddings.get(bottom))]
        for top in layer.values("top"):
            paddings[top] = layer if inner.value("type") == "padding" else None
        for padding in found:
            layer = _with_pad(layer, inner, padding, path)
        if inner.value("type") != "padding":
            kept.append(layer)
    return kept


def _with_pad(layer: Node, inner: Node, padding: Node, path) -> Node:
    """The layer, with the pad of the padding layer before it."""
    if inner.value("type") not in _WINDOWS:
        reason = f"padding before a layer of type {inner.value('type')!r}"
        raise CaffeValueError(f"{path}, line {padding.line}: {reason}")
    if [len(layer.values("bottom")), *(len(padding.values(name)) for name in ("bottom", "top"))] != [1, 1, 1]:
        raise CaffeValueError(f"{path}, line {padding.line}: padding is for layers of one bottom and one top")
    inner = inner.without("pad")
    inner.fields.append(Field("pad", padding.nodes("layer")[0].value("pad", "0"), inner.line))
    inner.fields.sort(key=lambda field: field.line)
    fields = [f for f in layer.fields if f.name not in ("layer", "bottom")]
    fields += [Field("layer", inner, layer.line), *(f for f in padding.fields if f.name == "bottom")]
    return Node(layer.line, fields, layer.path)

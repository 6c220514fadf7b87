"""A net's inputs: `input` fields, Input layers and data layers, and their shapes by the file's words.

Nothing is read here but the file's messages: what a data layer's first item has comes in (data/loader.py).
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from ...base import CaffeValueError, some
from ...caffe_files.parameters import did_you_mean
from ...caffe_files.prototxt import Node, integer
from .choice import by_torch
from .graph import Spec
from .registry import Folders

# The shapes of the first items that data layers read, by layer and blob.
Items = Mapping[Spec, dict[str, tuple[int, ...]]]
_LEGACY = ("num", "channels", "height", "width")


def is_input(spec: Spec, folders: Folders, runs_python: bool = False, own: Container[str] = ()) -> bool:
    """Are a layer's tops inputs of the net? Those of data layers are, and those of Python layers that do not run.

    Args:
        own: types for which the user or a folder has a module.
    """
    if spec.bottoms or spec.type in own or (spec.type == "Python" and runs_python):
        return False
    if is_data(spec.type):
        return True
    return not (by_torch(spec.type) or folders.find(spec.type))


def is_data(type_name: str) -> bool:
    return type_name in ("Input", "DummyData", "Python") or type_name.endswith("Data")


def check_names(given: dict, root: Node, specs: list[Spec], is_input, path) -> None:
    """Raise CaffeValueError for a shape of a blob that is not an input in any phase. `is_input` takes a Spec."""
    tops = [top for spec in specs if is_input(spec) for top in spec.tops]
    inputs = list(dict.fromkeys([*root.values("input"), *tops]))
    for name in given:
        if name not in inputs:
            listed = ", ".join(some(inputs)) or "none"
            near = did_you_mean(name, inputs)
            raise CaffeValueError(f"{path}: shapes: no input {name!r}{near or '.'} There are: {listed}")


def input_shapes(
    root: Node, specs: list[Spec], path, given: dict, others=(), items: Items | None = None
) -> dict[str, tuple[int, ...]]:
    """The inputs' shapes by blob, as far as they are known.

    Args:
        specs: the layers of a phase.
        given: the user's shapes, which win. A data layer's blobs have one batch size.
        others: the layers of all phases. Training and testing read the same images: if the phase's own data layer does
            not give a size, the other phase's does (except the batch size).
        items: of the data layers whose first item was read.
    """
    elsewhere, items = {}, items or {}
    for spec in others:
        elsewhere |= _of_layer(spec, path, given, items)
    shapes = _of_net(root, path)
    for spec in specs:
        found = _of_layer(spec, path, given, items)
        batch = _batch(spec, path, given)
        for top in spec.tops:
            if top not in found and elsewhere.get(top) and batch is not None and spec.type != "Input":
                found[top] = (batch, *elsewhere[top][1:])
        shapes |= found
    return elsewhere | shapes | given


def _of_layer(spec: Spec, path, given: dict, items: Items) -> dict[str, tuple[int, ...]]:
    if spec.bottoms:
        return {}
    if spec.type == "Input":
        param = spec.node.node("input_param") or Node()
        return _each(spec, [_dims(n, path) for n in param.nodes("shape")])
    batch = next((given[top][0] for top in spec.tops if given.get(top)), None)
    if spec.type == "DummyData":
        found = _dummy(spec, path)
    else:
        found = items.get(spec) or _data(spec, path, _batch(spec, path, given))
    return found if batch is None else {top: (batch, *shape[1:]) for top, shape in found.items()}


def _batch(spec: Spec, path, given: dict) -> int | None:
    """A data layer's batch size: the user's, or the file's."""
    said = next((given[top][0] for top in spec.tops if given.get(top)), None)
    if said is None and not spec.bottoms and "batch_size" in (fields := _parameters(spec)):
        return _integer(fields["batch_size"], spec.node, path)
    return said


def _parameters(spec: Spec) -> dict[str, str]:
    """The values of all messages of a data layer."""
    params = [f.value for f in spec.node.fields if f.name.endswith("_param") and isinstance(f.value, Node)]
    return {f.name: f.value for p in params for f in p.fields if isinstance(f.value, str)}


def _of_net(root: Node, path) -> dict[str, tuple[int, ...]]:
    names = root.values("input")
    shapes = [_dims(node, path) for node in root.nodes("input_shape")]
    if not shapes:
        flat = [_integer(v, root, path) for v in root.values("input_dim")]
        if flat and len(flat) != 4 * len(names):
            raise CaffeValueError(f"{path}: {len(flat)} input_dim for {len(names)} inputs; each has 4")
        shapes = [tuple(flat[i : i + 4]) for i in range(0, len(flat), 4)]
    elif len(shapes) != len(names):
        raise CaffeValueError(f"{path}: {len(shapes)} input_shape for {len(names)} inputs")
    return dict(zip(names, shapes, strict=False))


def _dims(node: Node, path) -> tuple[int, ...]:
    return tuple(_integer(v, node, path) for v in node.values("dim"))


def _integer(value: str, node: Node, path) -> int:
    try:
        number = integer(value)
    except ValueError:
        raise CaffeValueError(
            f"{path}, line {node.line}: a shape: expected an integer, got {value!r}"
        ) from None
    if not 0 <= number < 1 << 31:
        raise CaffeValueError(f"{path}, line {node.line}: a shape: {number} is out of range")
    return number


def _each(spec: Spec, shapes: list) -> dict[str, tuple[int, ...]]:
    """The tops' shapes: one for all, or one for each."""
    if len(shapes) == 1:
        return dict.fromkeys(spec.tops, shapes[0])
    return dict(zip(spec.tops, shapes, strict=False))


def _dummy(spec: Spec, path) -> dict[str, tuple[int, ...]]:
    param = spec.node.node("dummy_data_param") or Node()
    shapes = [_dims(n, path) for n in param.nodes("shape")]
    if not shapes:
        columns = [[_integer(v, param, path) for v in param.values(name)] for name in _LEGACY]
        if all(columns):
            count = max(map(len, columns))
            if all(len(column) in (1, count) for column in columns):
                shapes = [tuple(c[i] if len(c) > 1 else c[0] for c in columns) for i in range(count)]
    return _each(spec, shapes)


def _data(spec: Spec, path, batch: int | None) -> dict[str, tuple[int, ...]]:
    """The shapes of a data layer's tops: its batch size, and the image's crop or size.

    The number of channels is that of the mean values, 1 if the layer reads grey images, and else 3.
    """
    node = spec.node
    said = _parameters(spec)
    names = ("batch_size", "channels", "height", "width")
    if spec.type == "MemoryData" and all(name in said for name in names):
        sizes = [_integer(said[name], node, path) for name in names]
        return dict(zip(spec.tops, [tuple(sizes), (sizes[0],)], strict=False))
    if batch is None:
        return {}
    # The second top is a label for each item.
    labelled = spec.type in ("Data", "ImageData") or "label" in spec.tops[1:2]
    boxes = spec.type == "AnnotatedData"  # SSD's: rows (item, label, _, left, top, right, bottom, difficult)
    label: tuple[int, ...] = (1, 1, 1, 8) if boxes else (batch,)
    if said.get("yolo_data_type") == "1":  # rows (label, x, y, width, height)
        label = (batch, 1, 300, 5)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(spec.tops[1:2], label) if labelled or boxes else {}
    means = (node.node("transform_param") or Node()).values("mean_value")
    channels = len(means) if len(means) > 1 else 1 if said.get("force_gray") == "true" else 3
    if "crop_size" in said and _integer(said["crop_size"], node, path):
        side = _integer(said["crop_size"], node, path)
        shapes[spec.tops[0]] = (batch, channels, side, side)
    elif "new_height" in said and "new_width" in said and spec.type == "ImageData":
        size = [_integer(said[n], node, path) for n in ("new_height", "new_width")]
        shapes[spec.tops[0]] = (batch, channels, *size)
    elif boxes and (resize := _resized(node)) is not None:
        size = [_integer(resize.value(n), resize, path) for n in ("height", "width")]
        shapes[spec.tops[0]] = (batch, channels, *size)
    return shapes


def _resized(layer: Node) -> Node | None:
    """The message with the size that SSD's data layer gives all images."""
    transform = layer.node("transform_param") or Node()
    resize = transform.node("resize_param")
    return resize if resize and resize.has("height") and resize.has("width") else None

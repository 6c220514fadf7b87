"""cv2.dnn.Net on a CaffeNet: numpy arrays in, numpy arrays out, with OpenCV's names, shapes and errors."""

from __future__ import annotations

import json
import os
import tempfile
import time
import warnings
from collections.abc import Iterable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ...base import CaffeError, CaffeTypeError, CaffeValueError, describe, path_of, some
from ...caffe_files.parameters import did_you_mean
from ...caffe_files.prototxt import Node
from ..net import caffe_net
from ..net.apart import apart
from ..net.graph import Spec, Step
from ..net.net import CaffeNet
from ..stock import blobs_of
from .registered import RegisteredLayer, newest, registered

# Numbers of cv2.dnn's constants.
BACKENDS = {
    0: "DEFAULT",
    1: "HALIDE",
    2: "INFERENCE_ENGINE",
    3: "OPENCV",
    4: "VKCOM",
    5: "CUDA",
    6: "WEBNN",
    7: "TIMVX",
}
CUDA_TARGETS = (6, 7)  # DNN_TARGET_CUDA, DNN_TARGET_CUDA_FP16
TARGETS = {
    0: "CPU",
    1: "OPENCL",
    2: "OPENCL_FP16",
    3: "MYRIAD",
    4: "VULKAN",
    5: "FPGA",
    6: "CUDA",
    7: "CUDA_FP16",
}
TARGETS |= {8: "HDDL", 9: "NPU", 10: "CPU_FP16"}


def readNetFromCaffe(prototxt, caffeModel=None) -> Net:
    """A net of a prototxt and a caffemodel, in the phase TEST.

    Args:
        prototxt: a path, or the file's bytes (bytes, bytearray or a uint8 array).
        caffeModel: the same for the weights. None: the layers' fillers.

    Raises:
        cv2.error, or CaffeError where cv2 is not imported: a file is missing or damaged, or has unknown layers.
    """
    try:
        with (
            _file(prototxt, ".prototxt", "prototxt") as text,
            _file(caffeModel, ".caffemodel", "caffeModel") as weights,
        ):
            if text is None:
                raise CaffeValueError("readNetFromCaffe: prototxt: expected a file, got none")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                types = {
                    name: partial(RegisteredLayer, kind=kinds[-1])
                    for name, kinds in registered.items()
                    if kinds
                }
                # Crop without an offset cuts at 0, as in OpenCV.
                net = caffe_net(text.name, phase="TEST", crop="stock", types=types)
            if weights is not None:
                _warn_of_missing(net.load_caffemodel(weights.name), weights.shown)
    except (CaffeError, OSError) as error:
        raise wrong(error) from None
    return Net(net)


def _warn_of_missing(report, file: str) -> None:
    """Warn about layers without weights. If the net has no layer of the file, the file is another net's: an error."""
    if not report.missing:
        return
    names, others = (", ".join(some(layers, 8)) for layers in (report.missing, report.unused))
    words = f"{file}: no weights for the layers {names}; it has {others or 'no others'}"
    if not report.loaded:
        raise CaffeValueError(f"{words}: it is the file of another net")
    warnings.warn(words, stacklevel=3)


def readNet(model, config="", framework="") -> Net:
    """OpenCV's readNet for Caffe's files, in either order: the weights and the prototxt. None is "".

    Its other form has the framework first, and then bytes: readNet("caffe", weights, prototxt).

    Raises:
        cv2.error: the files are of another framework.
    """
    config, framework = ("" if value is None else value for value in (config, framework))
    if isinstance(model, str) and model.lower() == "caffe":
        return readNetFromCaffe(framework, config)
    files = [file for file in (model, config) if isinstance(file, (str, os.PathLike)) and os.fspath(file)]
    texts = [f for f in files if os.fspath(f).lower().endswith((".prototxt", ".pbtxt", ".pt"))]
    weights = [f for f in files if os.fspath(f).lower().endswith((".caffemodel", ".h5"))]
    if framework.lower() not in ("", "caffe") or len(texts) != 1 or len(texts) + len(weights) != len(files):
        raise wrong(
            f"readNet: expected a .prototxt and a .caffemodel, got {', '.join(map(str, files)) or 'none'}"
        )
    return readNetFromCaffe(texts[0], weights[0] if weights else None)


class _File:
    """A file that caffe_net can read by its path, and its name in messages."""

    def __init__(self, name: str, shown: str, temporary=None):
        self.name, self.shown, self.temporary = name, shown, temporary

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *error) -> None:
        if self.temporary is not None:
            self.temporary.close()


class _None:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *error) -> None:
        return None


def _file(value, suffix: str, name: str) -> _File | _None:
    """A path as it is; bytes as a temporary file; "" and None as no file."""
    if value is None or (isinstance(value, str) and not value):
        return _None()
    if isinstance(value, np.ndarray):
        value = value.astype(np.uint8, copy=False).tobytes()
    if isinstance(value, (bytes, bytearray, memoryview)):
        temporary = tempfile.NamedTemporaryFile(suffix=suffix)  # noqa: SIM115 - _File closes it
        temporary.write(value)
        temporary.flush()
        return _File(temporary.name, f"{name} of {len(value)} bytes", temporary)
    path = path_of(f"readNetFromCaffe: {name}", value)
    # A Windows script may have Windows' separators.
    path = path.replace("\\", "/") if not os.path.exists(path) and "\\" in path else path
    return _File(path, path)


def wrong(what) -> Exception:
    """An error as OpenCV raises it: cv2.error, if cv2 is imported."""
    import sys

    cv2 = sys.modules.get("cv2")
    if isinstance(what, CaffeError) and cv2 is None:
        return what
    return cv2.error(str(what)) if cv2 is not None else CaffeValueError(str(what))


class Layer:
    """cv2.dnn.Layer: `name`, `type`, and `blobs`, which may be set."""

    preferableTarget = 0

    def __init__(self, spec, module: torch.nn.Module | None):
        self.name, self.type, self._module = spec.name, spec.type, module
        self._tops = {top: i for i, top in enumerate(spec.tops)}
        self._is_product = spec.type == "InnerProduct"

    def outputNameToIndex(self, outputName: str) -> int:
        """The number of an output, from 0 on; -1: no output of that name."""
        return self._tops.get(outputName, -1)

    def _parameters(self) -> list[Tensor]:
        return [blob for _, blob in blobs_of(self._module)] if self._module is not None else []

    @property
    def blobs(self) -> tuple[np.ndarray, ...]:
        """The weights, as float32 arrays. OpenCV has a vector as a column, and an InnerProduct's bias as a row."""
        arrays = [blob.detach().float().cpu().numpy() for blob in self._parameters()]
        column = (1, -1) if self._is_product else (-1, 1)
        return tuple(array.reshape(column) if array.ndim < 2 else array for array in arrays)

    @blobs.setter
    def blobs(self, values) -> None:
        """Set the weights. Those that are not given, such as a bias, become 0."""
        own, values = self._parameters(), [np.asarray(value, np.float32) for value in values]
        sizes = [list(value.shape) for value in values]
        if len(values) > len(own) or any(a.size != b.numel() for a, b in zip(values, own, strict=False)):
            shapes = [list(blob.shape) for blob in own]
            raise wrong(f"getLayer: {self.name!r} ({self.type}): blobs: expected {shapes}, got {sizes}")
        with torch.no_grad():
            for i, blob in enumerate(own):
                if i < len(values):
                    blob.copy_(torch.from_numpy(np.ascontiguousarray(values[i])).reshape(blob.shape))
                else:
                    blob.zero_()


def _shapes_of(given) -> list[tuple[int, ...]]:
    """One shape, or a list of them."""
    several = len(given) and not isinstance(given[0], (int, np.integer))
    return [tuple(int(n) for n in shape) for shape in (given if several else [given])]


def _shapes_of_layers(net: CaffeNet, steps: list[Step], shapes: dict, **kind) -> list[tuple[list, list]]:
    """The shapes of each layer's inputs and outputs, for these shapes of the net's inputs."""
    values = list(dict.fromkeys(value for step in steps for value in (*step.bottoms, *step.tops)))
    with apart(net) as twin:
        inputs = {name: torch.zeros(shapes[name], **kind) for name in net.phase.graph.inputs}
        try:
            found = twin.values_of(values, inputs)
        except CaffeError as error:
            raise wrong(error) from None
    made = {value: np.array(x.shape, np.int32) for value, x in zip(values, found, strict=True)}
    return [([made[v] for v in step.bottoms], [made[v] for v in step.tops]) for step in steps]


def _detections(spec: Spec, rows: np.ndarray, images: int) -> np.ndarray:
    """In OpenCV's form: by image and score; keep_top_k rows for each image, with zeros at the end."""
    param = spec.node.node("detection_output_param")
    keep = int(param.value("keep_top_k", "-1")) if param is not None else -1
    found = rows[0, 0][rows[0, 0, :, 1] >= 0]  # in Caffe a row with class -1 means no box
    found = found[np.lexsort((-found[:, 2], found[:, 0]))]
    if keep <= 0:
        return found[None, None]
    made = np.zeros((1, 1, max(keep * images, len(found)), 7), np.float32)
    made[0, 0, : len(found)] = found
    return made


def _graph_text(steps: list[Step]) -> str:
    """The layers in the language of Graphviz."""
    lines = ["digraph G {", '\t"_input"']
    makers: dict[int, str] = {}
    for step in steps:
        name = json.dumps(step.spec.name)
        lines.append(f"\t{name} [label={json.dumps(f'{step.spec.name} {step.spec.type}')} shape=box]")
        sources = dict.fromkeys(makers.get(value, '"_input"') for value in step.bottoms)
        lines += [f"\t{source} -> {name}" for source in sources]
        makers.update(dict.fromkeys(step.tops, name))
    return "\n".join([*lines, "}", ""])


class Net:
    """cv2.dnn.Net.

    Arrays are float32. `forward` returns the output of a layer, in OpenCV's shape: [batch, channels, height, width], or
    [1, 1, N, 7] for DetectionOutput. The torch module is `module`.
    """

    def __init__(self, module: CaffeNet | None = None):
        self.module = None if module is None else module.fuse()
        self._inputs: dict[str, Tensor] = {}
        self._names: list[str] = []  # by setInputsNames
        self._device, self._dtype = torch.device("cpu"), torch.float32
        self._backend = 0
        self._time = 0.0

    def empty(self) -> bool:
        """Is the net without layers?"""
        return self.module is None

    # ---------------------------------------------------------------------------------------- layers

    def _steps(self) -> list:
        return self._loaded().phase.graph.steps

    def _loaded(self) -> CaffeNet:
        """The module. An error if the net is empty."""
        if self.module is None:
            raise wrong("Net: the net is empty: read one with readNetFromCaffe")
        return self.module

    def getLayerNames(self) -> tuple[str, ...]:
        """The names of the layers, in their order, without the inputs."""
        return tuple(step.spec.name for step in self._steps())

    def getLayerId(self, layer: str) -> int:
        """The number of a layer, from 1 on; 0 is the input, -1 no layer of that name."""
        names = ["_input", *self.getLayerNames()]
        return names.index(layer) if layer in names else -1

    def getLayer(self, layer) -> Layer:
        """A layer by its name or its number: an object with `name`, `type` and `blobs`. 0 is the inputs' layer."""
        if layer == "_input" or (isinstance(layer, (int, np.integer)) and layer == 0):
            return Layer(Spec(Node(0), "_input", "", (), tuple(self._input_names())), None)
        step = self._step(layer)
        return Layer(step.spec, self._loaded().get_layer(step.key) if step.key else None)

    def getParam(self, layer, numParam: int = 0) -> np.ndarray:
        """A layer's weights of this number."""
        blobs = self.getLayer(layer).blobs
        if not 0 <= numParam < len(blobs):
            raise wrong(f"getParam: {layer!r} has {len(blobs)} blobs, not one of number {numParam}")
        return blobs[numParam]

    def setParam(self, layer, numParam: int, blob) -> None:
        """Set a layer's weights of this number."""
        self.getParam(layer, numParam)
        found = self.getLayer(layer)
        found.blobs = [blob if i == numParam else own for i, own in enumerate(found.blobs)]

    def _step(self, layer):
        steps = self._steps()
        if isinstance(layer, (int, np.integer)):
            if not 1 <= layer <= len(steps):
                raise wrong(f"getLayer: no layer {layer}: expected 1 to {len(steps)}")
            return steps[layer - 1]
        for step in steps:
            if step.spec.name == layer:
                return step
        # OpenCV names outputs by their layers; scripts also use blobs' names.
        for step in reversed(steps):
            if layer in step.spec.tops:
                return step
        names = self.getLayerNames()
        near = did_you_mean(str(layer), names)
        raise wrong(f"Net: no layer {layer!r}{near or '.'} There are: {', '.join(some(names))}")

    def getUnconnectedOutLayers(self) -> np.ndarray:
        """The numbers of the layers whose outputs no layer reads, from 1 on."""
        return np.array([self.getLayerId(name) for name in self.getUnconnectedOutLayersNames()], np.int32)

    def getUnconnectedOutLayersNames(self) -> tuple[str, ...]:
        """The names of the layers whose outputs no layer reads."""
        steps = self._steps()
        read = {value for step in steps for value in step.bottoms}
        return tuple(step.spec.name for step in steps if step.key and not read.intersection(step.tops))

    def getLayerTypes(self) -> tuple[str, ...]:
        """The types that the net has."""
        return tuple(sorted({step.spec.type for step in self._steps()}))

    def getLayersCount(self, layerType: str) -> int:
        """The number of layers of a type."""
        return sum(step.spec.type == layerType for step in self._steps())

    def _input_names(self) -> list[str]:
        inputs = list(self._loaded().phase.graph.inputs)
        return self._names or inputs

    def setInputsNames(self, inputBlobNames) -> None:
        """Give the inputs other names, in their order, for setInput."""
        own = list(self._loaded().phase.graph.inputs) if self._steps() else []
        names = [inputBlobNames] if isinstance(inputBlobNames, str) else list(map(str, inputBlobNames))
        if len(names) > len(own):
            raise wrong(f"setInputsNames: {len(names)} names for {len(own)} inputs")
        self._names = [*names, *own[len(names) :]]

    def setInputShape(self, inputName: str, shape) -> None:
        """The shape of an input until setInput gives it an array: getLayersShapes and forward begin with it."""
        self.setInput(np.zeros([int(n) for n in shape], np.float32), inputName)

    def getLayersShapes(self, netInputShapes):
        """(the layers' numbers, the shapes of their inputs, of their outputs); the layer 0 is the inputs'."""
        given = _shapes_of(netInputShapes)
        found = [(given, given), *self._shapes(given)]
        arrays = [[tuple(np.array(n, np.int32) for n in shapes) for shapes in both] for both in found]
        return np.arange(len(found), dtype=np.int32), *map(tuple, zip(*arrays, strict=True))

    def getMemoryConsumption(self, *asked) -> tuple[int, int]:
        """(bytes of the weights, bytes of the outputs) of the net, or of a layer, whose number comes first."""
        layer, shapes = asked if len(asked) == 2 else (None, *asked)
        _, _, outputs = self.getLayersShapes(shapes)
        layers = range(len(outputs)) if layer is None else [self.getLayerId(self.getLayer(int(layer)).name)]
        weights = sum(blob.size for i in layers for blob in self.getLayer(i).blobs)
        return 4 * weights, 4 * sum(int(np.prod(shape)) for i in layers for shape in outputs[i])

    def _shapes(self, given: list[tuple[int, ...]]) -> list[tuple[list, list]]:
        steps, net = self._steps(), self._loaded()
        inputs = dict(net.shapes) | dict(zip(net.phase.graph.inputs, given, strict=False))
        return _shapes_of_layers(net, steps, inputs, device=self._device, dtype=self._dtype)

    def getLayerShapes(self, netInputShape, layerId: int):
        """(the shapes of a layer's inputs, of its outputs), for an input of this shape."""
        shape = tuple(int(n) for n in netInputShape)
        step = self._step(int(layerId))
        inputs, outputs = self._shapes([shape])[self._steps().index(step)]
        return inputs, outputs

    # ---------------------------------------------------------------------------------------- calls

    def setInput(self, blob, name: str = "", scalefactor: float = 1.0, mean=(0, 0, 0, 0)) -> None:
        """Set an input to (blob - mean) * scalefactor.

        Args:
            blob: an array of any numbers, [batch, channels, height, width] or the shape that the input has.
            name: the input's blob; "": the first.
            mean: a number for each channel, or one.
        """
        inputs, names = list(self._loaded().phase.graph.inputs), self._input_names()
        if name and name not in names:
            raise wrong(f"setInput: no input {name!r}. There are: {', '.join(names) or 'none'}")
        name = inputs[names.index(name)] if name else ""
        try:
            value = torch.from_numpy(np.ascontiguousarray(blob, np.float32))
        except (TypeError, ValueError):
            raise wrong(CaffeTypeError(f"setInput: blob: expected an array, got {describe(blob)}")) from None
        means = np.atleast_1d(np.array(mean, np.float32)).reshape(-1)
        if means.any() and value.dim() > 1:
            means = np.resize(means, value.shape[1]) if len(means) == 1 else means[: value.shape[1]]
            if len(means) != value.shape[1]:
                raise wrong(f"setInput: mean: {len(means)} numbers for {value.shape[1]} channels")
            value = value - torch.from_numpy(means).view(-1, *[1] * (value.dim() - 2))
        self._inputs[name or inputs[0]] = value * scalefactor if scalefactor != 1 else value

    def forward(self, outputName=None, outputBlobs=None):
        """Compute the output of a layer.

        Args:
            outputName: a layer's name; None or "": the last layer; a list of names: their outputs, as a tuple, and that
                of the last layer for an empty one. An array, which OpenCV takes as outputBlobs, is not written.

        Returns:
            an array, or a tuple of arrays.
        """
        steps = self._steps()
        last = next(step for step in reversed(steps) if step.key)
        if isinstance(outputName, np.ndarray):
            outputName = []
        if outputName is None or outputName == "":
            return self._forward([last])[0]
        if isinstance(outputName, str):
            return self._forward([self._step(outputName)])[0]
        if not isinstance(outputName, Iterable):
            raise wrong(f"forward: outputName: expected a name or names, got {describe(outputName)}")
        return tuple(self._forward([self._step(name) for name in outputName] or [last]))

    def forwardAndRetrieve(self, outBlobNames) -> tuple[tuple[np.ndarray, ...], ...]:
        """For each name, a tuple of all of the layer's outputs."""
        return tuple(
            tuple(self._numpy(step, value) for value in self._run(self._inputs, step.tops))
            for step in map(self._step, outBlobNames)
        )

    def _forward(self, steps: list) -> list[np.ndarray]:
        # For Silence, OpenCV returns its bottom.
        found = self._run(self._inputs, [(step.tops or step.bottoms)[0] for step in steps])
        return [self._numpy(step, value) for step, value in zip(steps, found, strict=True)]

    def _numpy(self, step, value: Tensor) -> np.ndarray:
        array = np.ascontiguousarray(value.to("cpu", torch.float32).numpy())
        images = next(iter(self._inputs.values())).shape[0] if self._inputs else 1
        return _detections(step.spec, array, images) if step.spec.type == "DetectionOutput" else array

    def _run(self, inputs: dict[str, Tensor], values: list[int]) -> list[Tensor]:
        """The values of these numbers in the graph, for these inputs."""
        moved = {name: self._placed(value) for name, value in inputs.items()}
        self._take_registered()
        began = time.perf_counter()
        try:
            with torch.inference_mode():
                found = self._loaded().values_of(values, moved)
        except CaffeError as error:
            if not inputs and self._loaded().phase.graph.inputs:
                error = type(error)(f"{error}. net.setInput(blob) gives an input")
            raise wrong(error) from None
        self._time = time.perf_counter() - began
        return found

    def _take_registered(self) -> None:
        """Compute by the classes that are registered now."""
        net = self._loaded()
        for step in self._steps():
            kind, module = newest(step.spec.type), net._modules.get(step.key)
            is_own = isinstance(module, RegisteredLayer)
            if module is None or kind is (module.kind if is_own else None):
                continue
            before = module.before if is_own else module
            if kind is not None:
                before = RegisteredLayer(step.spec, kind, before)
            if before is not None:
                net._modules[step.key] = before
                net._schedules.clear()

    def _placed(self, value: Tensor) -> Tensor:
        value = value.to(self._device, self._dtype)
        return value.contiguous(memory_format=torch.channels_last) if value.dim() == 4 else value

    # -------------------------------------------------------------------------------------- settings

    def setPreferableBackend(self, backendId: int) -> None:
        """Without effect, because torch computes. (DNN_BACKEND_CUDA needs a CUDA target, too.)"""
        if int(backendId) not in BACKENDS:
            warnings.warn(f"setPreferableBackend({backendId}): not known; torch computes", stacklevel=2)
        self._backend = int(backendId)

    def setPreferableTarget(self, targetId: int) -> None:
        """CUDA and CUDA_FP16 choose the GPU, and warn if there is none. All others choose the processor."""
        target = int(targetId)
        if target not in TARGETS:
            warnings.warn(f"setPreferableTarget({targetId}): not known: the CPU computes", stacklevel=2)
        on_gpu = target in CUDA_TARGETS
        if on_gpu and not torch.cuda.is_available():
            warnings.warn(
                "setPreferableTarget: there is no GPU that torch can use: the CPU computes", stacklevel=2
            )
            on_gpu = False
        self._device = torch.device("cuda" if on_gpu else "cpu")
        self._dtype = torch.float16 if on_gpu and target == CUDA_TARGETS[1] else torch.float32
        if self.module is not None:
            self.module.to(self._device, self._dtype)

    def enableFusion(self, fusion: bool) -> None:
        """Compute Convolution, BatchNorm and Scale together, or one by one. At first together."""
        if self.module is not None:
            self.module.fuse(bool(fusion))

    def enableWinograd(self, useWinograd: bool) -> None:
        """Without effect."""

    def getPerfProfile(self) -> tuple[int, np.ndarray]:
        """(the time of the last forward in nanoseconds, which are cv2's ticks, and an empty list of layers' times)."""
        return int(self._time * 1e9), np.zeros((0, 1), np.float64)

    def dumpToFile(self, path) -> None:
        """Write the net's graph to a file, in the language of Graphviz: a box for each layer."""
        with open(path_of("dumpToFile: path", path), "w", encoding="utf-8") as file:
            file.write(_graph_text(self._steps()))

    def dump(self) -> str:
        """The net as text: a line for each layer, with its type and its blobs."""
        specs = (step.spec for step in self._steps())
        return "".join(f"{s.name}: {s.type}({', '.join(s.bottoms)}) -> {', '.join(s.tops)}\n" for s in specs)

    def __getattr__(self, name: str):
        raise AttributeError(f"cv2.dnn.Net has no {name!r} here{did_you_mean(name, dir(type(self)))}")

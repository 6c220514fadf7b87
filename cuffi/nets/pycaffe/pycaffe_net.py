"""caffe.Net on a CaffeNet: pycaffe's names. Other modules of this folder do the work, on its state."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

import numpy as np

from ...base import CaffeTypeError, CaffeValueError, describe
from ...caffe_files.parameters import did_you_mean
from ...caffe_files.prototxt import parse
from ..net import CaffeNet, caffe_net
from ..net.blob import BlobVec
from ..net.builder import read_net
from ..net.python_layer import PythonLayer, PythonPath
from ..python2 import Tree, folders_of_user
from . import batches, diffs, feeds, mode, ranges
from .blobs import Input, Layers, Names, NetBlob, NetLayer, layer_blobs, save_hdf5
from .io import Transformer
from .net_state import NetState
from .runtime_errors import as_runtime

_OF_TRANSFORMER = (
    "preprocess",
    "deprocess",
    "set_mean",
    "set_channel_swap",
    "set_raw_scale",
    "set_input_scale",
)


def _computed_once(method):
    """A property that is computed once, as in pycaffe: later calls see what a script changes in it."""
    name = f"_{method.__name__}_"

    def get(self):
        if name not in self.__dict__:
            self.__dict__[name] = method(self)
        return self.__dict__[name]

    return property(get, doc=method.__doc__)


class Net:
    """caffe.Net(network_file, phase, weights=...) or caffe.Net(network_file, weights, phase).

    `blobs`, `params`, `inputs`, `outputs`, `layers`, `forward`, `backward`, `reshape`, `save`, `copy_from` and
    `share_with` are pycaffe's. On the processor, arrays share the tensors' memory. On a GPU they are copies, and
    changes are copied back at the next call. The torch module is `net.module`.

    Args:
        python_layers: False: a Python layer's module runs if `import` finds it on sys.path, as in pycaffe. True: also
            if it is beside the prototxt, or in a folder above it. `python -m cuffi.caffe script.py` asks for both.
    """

    @as_runtime
    def __init__(
        self, network_file, *args, phase=None, weights=None, level=None, stages=(), python_layers=False
    ):
        self._state = _opened(network_file, args, phase, weights, level, stages, python_layers)
        _make_blobs(self._state)

    # ------------------------------------------------------------------------------------ what it is

    @property
    def module(self) -> CaffeNet:
        """The torch module."""
        return self._state.module

    @_computed_once
    def blobs(self) -> OrderedDict[str, NetBlob]:
        """The blobs by name, in the order of the file. `data` and `diff` are arrays."""
        return Names(self._state.blobs.items(), "net.blobs", "blob")

    @_computed_once
    def params(self) -> OrderedDict[str, BlobVec]:
        """The parameters' blobs by layer: `net.params["conv1"][0]` is the weight, `[1]` the bias."""
        params = self._state.params
        with_blobs = [(name, blobs) for name, blobs in params.items() if blobs]
        those = f"has no parameters. Those that have: {', '.join(name for name, _ in with_blobs) or 'none'}"
        without = {name: those for name, blobs in params.items() if not blobs}
        return Names(with_blobs, "net.params", "layer with parameters", without)

    @_computed_once
    def inputs(self) -> list[str]:
        """The names of the input blobs."""
        return [top for spec in self._state.specs if spec.type == "Input" for top in spec.tops]

    @_computed_once
    def outputs(self) -> list[str]:
        """The names of the blobs that no layer reads."""
        return list(self._state.graph.outputs)

    @_computed_once
    def layers(self) -> Layers:
        """The layers with their `type` and `blobs`; for Python layers, the user's objects."""
        modules = self.module.layers
        return Layers(
            module.instance.layer
            if isinstance(module := modules.get(spec.name), PythonLayer)
            else NetLayer(spec.type, self._state.params[spec.name])
            for spec in self._state.specs
        )

    @_computed_once
    def layer_dict(self) -> OrderedDict:
        """The layers by name."""
        return OrderedDict(zip(self._state.names, self.layers, strict=True))

    @property
    def _layer_names(self) -> list[str]:
        return self._state.names

    @property
    def _blob_names(self) -> list[str]:
        return list(self._state.blobs)

    @property
    def _blobs(self) -> tuple[NetBlob, ...]:
        return tuple(self._state.blobs.values())

    @property
    def _blob_loss_weights(self) -> list[float]:
        return list(self.blob_loss_weights.values())

    @property
    def _inputs(self) -> list[int]:
        return self._ids(self.inputs)

    @property
    def _outputs(self) -> list[int]:
        return self._ids(self.outputs)

    def _ids(self, names) -> list[int]:
        known = self._blob_names
        return [known.index(name) for name in names]

    def _top_ids(self, layer: int) -> list[int]:
        return self._ids(self._state.specs[layer].tops)

    def _bottom_ids(self, layer: int) -> list[int]:
        return self._ids(self._state.specs[layer].bottoms)

    @_computed_once
    def top_names(self) -> OrderedDict:
        """The names of each layer's tops, by the layer's name."""
        return OrderedDict((spec.name, list(spec.tops)) for spec in self._state.specs)

    @_computed_once
    def bottom_names(self) -> OrderedDict:
        """The names of each layer's bottoms, by the layer's name."""
        return OrderedDict((spec.name, list(spec.bottoms)) for spec in self._state.specs)

    @_computed_once
    def blob_loss_weights(self) -> OrderedDict:
        """The weight of each blob in the loss, by name; 0 for a blob that is no loss."""
        weights = self.module.phase.loss_weights
        return OrderedDict((name, weights.get(name, 0.0)) for name in self._state.blobs)

    def __getattr__(self, name: str):
        if name == "transformer":  # in 2014 the net itself had these methods
            self.transformer = Transformer({top: self._state.blobs[top].data.shape for top in self.inputs})
            for top in self.inputs:
                self.transformer.set_transpose(top, (2, 0, 1))
            return self.transformer
        if name in _OF_TRANSFORMER:
            return getattr(self.transformer, name)
        raise AttributeError(f"caffe.Net has no {name!r} here{did_you_mean(name, dir(type(self)))}")

    # Names from 2014.
    set_mode_cpu, set_mode_gpu = staticmethod(mode.set_mode_cpu), staticmethod(mode.set_mode_gpu)
    set_device = staticmethod(mode.set_device)

    def set_phase_test(self) -> None:
        """Nothing, in a net for TEST. In another it is a CaffeValueError."""
        self._is_in(mode.TEST)

    def set_phase_train(self) -> None:
        """Nothing, in a net for TRAIN. In another it is a CaffeValueError."""
        self._is_in(mode.TRAIN)

    def _is_in(self, phase) -> None:
        if self._state.phase != phase:
            raise CaffeValueError(
                f"{self.module.path}: the net was built for {self._state.phase}: caffe.Net(..., caffe.{phase})"
            )

    # --------------------------------------------------------------------------------------- forward

    @as_runtime
    def forward(self, blobs=None, start=None, end=None, **kwargs) -> dict[str, np.ndarray]:
        """Run the net from the layer `start` to the layer `end`.

        Args:
            blobs: names of blobs to return besides the outputs.
            kwargs: arrays for the inputs; all of them, or none.

        Returns:
            arrays by blob: the net's outputs, or the tops of `end`.
        """
        first, last = self._state.range(start, end)
        if kwargs:
            self._state.write(kwargs, self.inputs, "inputs", "data")
        self._forward(first, last)
        wanted = self.top_names[end] if end is not None else self.outputs
        return self._state.read([*wanted, *(blobs or ())], "data")

    def _forward(self, first: int, last: int) -> float:
        return ranges.forward(self._state, first, last)

    def before_forward(self, function) -> None:
        """Call function(number of the layer) before each layer's forward."""
        self._state.callbacks["before_forward"].append(function)

    def after_forward(self, function) -> None:
        """Call function(number of the layer) after each layer's forward."""
        self._state.callbacks["after_forward"].append(function)

    def before_backward(self, function) -> None:
        """Call function(number of the layer) for each layer, last first, before the backward of all."""
        self._state.callbacks["before_backward"].append(function)

    def after_backward(self, function) -> None:
        """Call function(number of the layer) for each layer, last first, after the backward of all."""
        self._state.callbacks["after_backward"].append(function)

    @as_runtime
    def set_input_arrays(self, data, labels) -> None:
        """Give a MemoryData layer its arrays: float32 [n, channels, height, width] and [n], n a multiple of the batch.

        Each forward reads the next batch, and begins again at the end.
        """
        feeds.set_input_arrays(self._state, data, labels)

    # -------------------------------------------------------------------------------------- backward

    @as_runtime
    def backward(self, diffs=None, start=None, end=None, **kwargs) -> dict[str, np.ndarray]:
        """Compute diffs from the layer `start` back to the layer `end`.

        A blob that no layer of the range reads starts with its own `diff`, which is the loss_weight for a loss. The
        parameters' diffs are added up.

        Args:
            diffs: names of blobs whose diffs are returned besides those of the inputs, or of `end`'s bottoms.
            kwargs: diffs of the outputs; all of them, or none.
        """
        first, last = self._state.range(end, start)  # in the file's order
        if kwargs:
            tops = self.outputs if start is None else list(self._state.specs[last].tops)
            self._state.write(kwargs, tops, "diffs", "diff")
        self._backward(last, first)
        wanted = self.bottom_names[end] if end is not None else self.inputs
        return self._state.read([*wanted, *(diffs or ())], "diff")

    def _backward(self, last: int, first: int) -> None:
        diffs.backward(self._state, last, first)

    def clear_param_diffs(self) -> None:
        """Set all parameters' diffs to 0."""
        for params in self._state.params.values():
            for param in params:
                param.diff[...] = 0

    # --------------------------------------------------------------------------------------- batches

    def forward_all(self, blobs=None, **kwargs) -> dict[str, np.ndarray]:
        """Run any number of items in batches of the net's size. The rest of the last batch is zeros."""
        return batches.forward_all(self, self._state, blobs, kwargs)

    def forward_backward_all(self, blobs=None, diffs=None, **kwargs) -> tuple[dict, dict]:
        """Like forward_all, with backward for each batch. kwargs: arrays of the inputs, and diffs of the outputs."""
        return batches.forward_backward_all(self, self._state, blobs, diffs, kwargs)

    # --------------------------------------------------------------------------------------- weights

    @as_runtime
    def reshape(self) -> None:
        """Apply the inputs' new shapes. The next call, or the next read of a blob, does this anyway."""

    @as_runtime
    def save(self, filename) -> None:
        """Write the parameters as a .caffemodel."""
        self._state.to_device()
        self.module.save_caffemodel(filename)

    @as_runtime
    def copy_from(self, filename) -> None:
        """Load the layers of that name from a .caffemodel or .caffemodel.h5."""
        self.module.load_caffemodel(filename)

    load_hdf5 = copy_from

    @as_runtime
    def save_hdf5(self, filename) -> None:
        """Write the parameters as Caffe's HDF5: data/LAYER/0, data/LAYER/1 and so on."""
        save_hdf5(self._state.params, filename)

    @as_runtime
    def share_with(self, other: Net) -> None:
        """Use the parameters of the other net's layers of the same names."""
        if not isinstance(other, Net):
            raise CaffeTypeError(f"share_with: expected a caffe.Net, got {describe(other)}")
        self.module.share_with(other.module)


def _opened(network_file, args, phase, weights, level, stages, python_layers: bool) -> NetState:
    for value in args:
        if isinstance(value, str) and value in ("TRAIN", "TEST"):
            raise CaffeValueError(f"caffe.Net: got the text {value!r} for the phase: caffe.{value}")
        if isinstance(value, int) and phase is None:
            phase = value
        elif isinstance(value, int):
            level = value
        elif isinstance(value, list | tuple):
            stages = value
        else:
            weights = value
    if phase not in (None, mode.TRAIN, mode.TEST):
        raise CaffeValueError(f"caffe.Net: phase: expected caffe.TRAIN (0) or caffe.TEST (1), got {phase!r}")
    phase = mode.TEST if phase is None else type(mode.TEST)(phase)
    file = "" if isinstance(network_file, str) and "{" in network_file else network_file
    folders = () if Tree.running else folders_of_user()
    found, stages = PythonPath(folders, file, python_layers or Tree.running is not None), tuple(stages or ())
    module = caffe_net(
        network_file, weights, phase=str(phase), stages=stages, level=level, python_layers=found
    )
    text, path = read_net(network_file, None)
    force_backward = parse(text, path).value("force_backward") == "true"
    if force_backward:  # Caffe then computes the diffs of all parameters, also with lr_mult: 0
        module.requires_grad_()
    return NetState(module, phase, force_backward)


def _make_blobs(state: NetState) -> None:
    shapes, weights, graph = state.module.shapes, state.module.phase.loss_weights, state.graph
    settle, changed = partial(ranges.settle, state), partial(setattr, state, "is_stale", True)
    for name in graph.latest:
        shape = tuple(shapes.get(name, ()))
        if name in graph.inputs:
            state.blobs[name] = Input(shape, mode.device, changed)
        else:
            state.blobs[name] = NetBlob(shape, mode.device, settle, weights.get(name, 0.0))
    layers = state.module.layers
    for spec in state.specs:
        module = layers.get(spec.name)
        state.params[spec.name] = layer_blobs(module, f"net.params[{spec.name!r}]")
    feeds.fill_dummies(state, first=True)

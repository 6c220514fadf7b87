"""caffe.Net on a CaffeNet."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable
from itertools import zip_longest
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor

from ...base import CaffeError, CaffeRuntimeError, CaffeTypeError, CaffeValueError, describe, some
from ...base.files import written_whole
from ...caffe_files.parameters import did_you_mean
from ...caffe_files.prototxt import parse
from ..data.sources import package
from ..net import caffe_net
from ..net.apart import apart, remembered
from ..net.blob import BlobVec
from ..net.builder import read_net
from ..net.fillers import fill
from ..net.graph import Spec, Step
from ..net.messages import layer_parameter
from ..net.python_layer import PythonLayer, PythonPath
from ..net.running import run_named
from ..net.schedule import calls_of
from ..python2 import Tree, folders_of_user
from . import mode
from .blobs import Input, Layers, Names, NetBlob, NetLayer, layer_blobs
from .io import Transformer
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
        for value in args:
            if isinstance(value, int) and phase is None:
                phase = value
            elif isinstance(value, int):
                level = value
            elif isinstance(value, list | tuple):
                stages = value
            else:
                weights = value
        if phase not in (None, mode.TRAIN, mode.TEST):
            raise CaffeValueError(
                f"caffe.Net: phase: expected caffe.TRAIN (0) or caffe.TEST (1), got {phase!r}"
            )
        self._phase = mode.TEST if phase is None else type(mode.TEST)(phase)
        file = "" if isinstance(network_file, str) and "{" in network_file else network_file
        folders = () if Tree.running else folders_of_user()
        found = PythonPath(folders, file, beside=python_layers or Tree.running is not None)
        self.module = caffe_net(
            network_file,
            weights,
            phase=str(self._phase),
            stages=tuple(stages or ()),
            level=level,
            python_layers=found,
        )
        text, path = read_net(network_file, None)
        self._force_backward = parse(text, path).value("force_backward") == "true"
        if self._force_backward:  # Caffe then computes the diffs of all parameters, also with lr_mult: 0
            self.module.requires_grad_()
        self._graph = self.module.phase.graph
        layers = [(spec, None) for spec in self._graph.sources] + [
            (step.spec, step) for step in self._graph.steps
        ]
        layers.sort(key=lambda layer: layer[0].line)
        self._specs: list[Spec] = [spec for spec, _ in layers]
        self._steps: list[Step | None] = [step for _, step in layers]
        self._stale, self._tape, self._device = False, None, torch.device("cpu")
        self._feeds: dict | None = {}  # the data layers' batches; None: their data are missing
        self._memory: SimpleNamespace | None = None  # the arrays of set_input_arrays
        self._callbacks = {
            f"{when}_{what}": [] for when in ("before", "after") for what in ("forward", "backward")
        }
        self._start: Callable[[], object] = bool  # brings back what the last forward changed
        self._entered: dict[int, Tensor] = {}  # the blobs' values that the last call read, by value number
        self._calls: dict[tuple[int, int, bool, bool], list] = {}
        self._make_blobs()

    def _make_blobs(self) -> None:
        shapes, weights = self.module.shapes, self.module.phase.loss_weights
        self._by_name: dict[str, NetBlob] = {}
        for name in self._graph.latest:
            shape = tuple(shapes.get(name, ()))
            if name in self._graph.inputs:
                self._by_name[name] = Input(shape, mode.device, self._changed)
            else:
                self._by_name[name] = NetBlob(shape, mode.device, self._settle, weights.get(name, 0.0))
        modules = self.module.layers
        self._params = {
            spec.name: layer_blobs(modules.get(spec.name), f"net.params[{spec.name!r}]")
            for spec in self._specs
        }
        self._fill_dummies(first=True)

    # ------------------------------------------------------------------------------------ what it is

    @_computed_once
    def blobs(self) -> OrderedDict[str, NetBlob]:
        """The blobs by name, in the order of the file. `data` and `diff` are arrays."""
        return Names(self._by_name.items(), "net.blobs")

    @_computed_once
    def params(self) -> OrderedDict[str, BlobVec]:
        """The parameters' blobs by layer: `net.params["conv1"][0]` is the weight, `[1]` the bias."""
        return Names([(name, blobs) for name, blobs in self._params.items() if blobs], "net.params")

    @_computed_once
    def inputs(self) -> list[str]:
        """The names of the input blobs."""
        return [top for spec in self._specs if spec.type == "Input" for top in spec.tops]

    @_computed_once
    def outputs(self) -> list[str]:
        """The names of the blobs that no layer reads."""
        return list(self._graph.outputs)

    @_computed_once
    def layers(self) -> Layers:
        """The layers with their `type` and `blobs`; for Python layers, the user's objects."""
        modules = self.module.layers
        return Layers(
            module.instance.layer
            if isinstance(module := modules.get(spec.name), PythonLayer)
            else NetLayer(spec.type, self._params[spec.name])
            for spec in self._specs
        )

    @_computed_once
    def layer_dict(self) -> OrderedDict:
        """The layers by name."""
        return OrderedDict(zip(self._layer_names, self.layers, strict=True))

    @property
    def _layer_names(self) -> list[str]:
        return [spec.name for spec in self._specs]

    @property
    def _blob_names(self) -> list[str]:
        return list(self._by_name)

    @property
    def _blobs(self) -> tuple[NetBlob, ...]:
        return tuple(self._by_name.values())

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
        return self._ids(self._specs[layer].tops)

    def _bottom_ids(self, layer: int) -> list[int]:
        return self._ids(self._specs[layer].bottoms)

    @_computed_once
    def top_names(self) -> OrderedDict:
        """The names of each layer's tops, by the layer's name."""
        return OrderedDict((spec.name, list(spec.tops)) for spec in self._specs)

    @_computed_once
    def bottom_names(self) -> OrderedDict:
        """The names of each layer's bottoms, by the layer's name."""
        return OrderedDict((spec.name, list(spec.bottoms)) for spec in self._specs)

    @_computed_once
    def blob_loss_weights(self) -> OrderedDict:
        """The weight of each blob in the loss, by name; 0 for a blob that is no loss."""
        weights = self.module.phase.loss_weights
        return OrderedDict((name, weights.get(name, 0.0)) for name in self._by_name)

    def __getattr__(self, name: str):
        if name == "transformer":  # in 2014 the net itself had these methods
            self.transformer = Transformer({top: self._by_name[top].data.shape for top in self.inputs})
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
        if self._phase != phase:
            raise CaffeValueError(
                f"{self.module.path}: the net was built for {self._phase}: caffe.Net(..., caffe.{phase})"
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
        first, last = self._range(start, end)
        if kwargs:
            self._all(kwargs, self.inputs, "inputs")
            for name, value in kwargs.items():
                self._write(name, value, "data")
        self._forward(first, last)
        wanted = self.top_names[end] if end is not None else self.outputs
        return {name: self._blob(name).data for name in dict.fromkeys([*wanted, *(blobs or ())])}

    def _forward(self, first: int, last: int) -> float:
        """Run the layers with these numbers. Returns the loss."""
        # Layers that change in a forward, such as TRAIN's BatchNorm, are not run again for backward.
        record = self._force_backward or self._phase == mode.TRAIN
        if self._callbacks["before_forward"] or self._callbacks["after_forward"]:
            self._run_one_by_one(first, last, record)
        else:
            self._run(first, last, record)
        tops = {top for spec in self._specs[first : last + 1] for top in spec.tops}
        weights = self.module.phase.loss_weights
        return sum(float(self._by_name[top].data.sum()) * weights[top] for top in weights if top in tops)

    def _run_one_by_one(self, first: int, last: int, record: bool) -> None:
        """With callbacks, which may read and write the blobs around each layer."""
        for i in range(first, last + 1):
            self._call_back("before_forward", i)
            self._run(i, i)
            self._call_back("after_forward", i)
        self._tape = None  # backward runs the layers again

    def _call_back(self, when: str, layer: int) -> None:
        for function in self._callbacks[when]:
            function(layer)

    def before_forward(self, function) -> None:
        """Call function(number of the layer) before each layer's forward."""
        self._callbacks["before_forward"].append(function)

    def after_forward(self, function) -> None:
        """Call function(number of the layer) after each layer's forward."""
        self._callbacks["after_forward"].append(function)

    def before_backward(self, function) -> None:
        """Call function(number of the layer) for each layer, last first, before the backward of all."""
        self._callbacks["before_backward"].append(function)

    def after_backward(self, function) -> None:
        """Call function(number of the layer) for each layer, last first, after the backward of all."""
        self._callbacks["after_backward"].append(function)

    def _range(self, start, end) -> tuple[int, int]:
        return (
            0 if start is None else self._index(start, "start"),
            len(self._specs) - 1 if end is None else self._index(end, "end"),
        )

    def _index(self, name: str, what: str) -> int:
        if name not in self._layer_names:
            near = did_you_mean(name, self._layer_names)
            known = ", ".join(some(self._layer_names))
            raise CaffeValueError(
                f"{self.module.path}: {what}: no layer {name!r}{near or '.'} There are: {known}"
            )
        return self._layer_names.index(name)

    def _blob(self, name: str) -> NetBlob:
        if name not in self._by_name:
            known = ", ".join(some(self._by_name))
            raise CaffeValueError(f"{self.module.path}: no blob {name!r}. There are: {known}")
        return self._by_name[name]

    def _all(self, given: dict, wanted: list[str], what: str) -> None:
        if set(given) != set(wanted):
            raise CaffeValueError(
                f"{self.module.path}: {what}: expected {', '.join(wanted) or 'none'}, got {', '.join(given)}"
            )

    def _write(self, name: str, value, what: str) -> None:
        array = getattr(self._blob(name), what)
        if not np.ndim(value) or np.shape(value)[0] != array.shape[0]:
            raise CaffeValueError(
                f"{self.module.path}: {name!r}: expected a batch of {array.shape[0]}, got {list(np.shape(value))}; "
                f"net.blobs[{name!r}].reshape(...) changes it"
            )
        try:
            array[...] = value
        except (ValueError, TypeError) as error:
            raise CaffeValueError(f"{self.module.path}: {name!r}: {error}") from None

    def _run(self, first: int, last: int, record: bool = False, again: bool = False) -> None:
        """Run a range of layers, and store their results.

        Args:
            record: keep what backward needs.
            again: use the values that the last call read. Layers without bottoms do not run.
        """
        self._stale, self._tape = False, None
        self._to_device()
        if first == 0 and not again:
            self._fill_dummies()
            self._read_data()
        if not again:
            self._start = remembered(self.module)
        steps = [step for step in self._between(first, last) if step.bottoms or not again]
        values: list[Tensor | None] = [None] * len(self._graph.names)
        self._enter(steps, values, record, again)
        if (first, last, record, again) not in self._calls:
            every = {value for step in steps for value in (*step.bottoms, *step.tops)}
            results = every if record else set(self._graph.latest.values())
            modules = dict(self.module.named_children())
            self._calls[first, last, record, again] = calls_of(modules, steps, results)
        calls = self._calls[first, last, record, again]
        with torch.enable_grad() if record else torch.no_grad():
            run_named(self.module, calls, values)
        self._tape = SimpleNamespace(first=first, last=last, values=values) if record else None
        for step in steps:
            for value in step.tops:
                if (made := values[value]) is not None:
                    self._by_name[self._graph.names[value]].take(made)

    def _between(self, first: int, last: int) -> list[Step]:
        return [step for step in self._steps[first : last + 1] if step is not None and step.key]

    def _enter(self, steps: list[Step], values: list, record: bool, again: bool) -> None:
        """The values of earlier layers, as bottoms. An input has a gradient if the file has force_backward."""
        made = {value for step in steps for value in step.tops}
        before = self._entered if again else {}
        self._entered = {}
        for value in {value for step in steps for value in step.bottoms if value not in made}:
            name = self._graph.names[value]
            entered = before[value] if value in before else self._by_name[name].tensor().detach()
            if self._graph.latest[name] in made:  # an in-place layer overwrites the blob
                entered = entered.detach().clone()
            if record and (self._force_backward or name not in self._graph.inputs):
                entered.requires_grad_(entered.is_floating_point())
            values[value] = self._entered[value] = entered

    def _to_device(self) -> None:
        if self._device != mode.device():
            self._device = mode.device()
            self.module.to(self._device)
        for param in (param for params in self._params.values() for param in params):
            param.send()

    def _changed(self) -> None:
        self._stale = True

    def _settle(self) -> None:
        """Reshape all blobs before one is read, if an input has another shape than at the last call.

        A twin runs, so that states, statistics and random numbers stay. Python layers are the net's own.
        """
        if not self._stale:
            return
        own, calls, self._entered = self.module, self._calls, {}
        users = [module for module in own.children() if isinstance(module, PythonLayer)]
        with apart(own, evaluated=False, kept=users) as twin:
            self.module, self._calls = twin, {}
            try:
                self._run(0, len(self._specs) - 1, again=True)
            finally:
                self.module, self._calls = own, calls

    def _fill_dummies(self, first: bool = False) -> None:
        """Fill the tops of DummyData: constants once, other fillers at each call."""
        for spec in self._graph.sources:
            if spec.type != "DummyData":
                continue
            fillers = layer_parameter(spec.node)[0].dummy_data_param.data_filler
            for i, top in enumerate(spec.tops):
                filler = fillers[min(i, len(fillers) - 1)] if fillers else None
                if filler is not None and (first or filler.type != "constant"):
                    fill(self._by_name[top].tensor(), filler)

    def _read_data(self) -> None:
        """The next batch of each data layer that has files. Without files, the script's own values are used."""
        own = ("Input", "DummyData", "MemoryData") if self._memory else ("Input", "DummyData")
        sources = {spec.name: spec for spec in self._graph.sources if spec.type not in own}
        if self._memory:
            self._read_memory(self._memory)
        if not sources or self._feeds is None:
            return
        try:
            self._feeds = self._feeds or {
                name: iter(all) for name, all in self.module.data_loaders(seed=mode.seed()).items()
            }
            batches = [next(feed) for feed in self._feeds.values()]
        except (CaffeError, OSError):
            if not all(self._by_name[top].is_out for spec in sources.values() for top in spec.tops[:1]):
                raise
            self._feeds = None
            return
        for batch in batches:
            for top, value in batch.items():
                self._by_name[top].take(value.to(self._device))

    @as_runtime
    def set_input_arrays(self, data, labels) -> None:
        """Give a MemoryData layer its arrays: float32 [n, channels, height, width] and [n], n a multiple of the batch.

        Each forward reads the next batch, and begins again at the end.
        """
        spec = self._specs[0]
        if spec.type != "MemoryData":
            raise CaffeRuntimeError(f"{self.module.path}: set_input_arrays: the first layer is {spec.type}")
        labels = np.reshape(labels, (-1,))
        shape = self._by_name[spec.tops[0]].shape
        for name, array, wanted in (("data", data, shape[1:]), ("labels", labels, ())):
            if (
                array.dtype != np.float32
                or array.shape[1:] != wanted
                or not len(array)
                or len(array) % shape[0]
            ):
                raise CaffeRuntimeError(
                    f"set_input_arrays: {name}: expected float32 of [n * {shape[0]}, *{list(wanted)}], "
                    f"got {array.dtype} of {list(array.shape)}"
                )
        if len(data) != len(labels):
            raise CaffeRuntimeError(f"set_input_arrays: {len(data)} items and {len(labels)} labels")
        self._memory = SimpleNamespace(arrays=dict(zip(spec.tops, (data, labels), strict=False)), at=0)

    def _read_memory(self, memory: SimpleNamespace) -> None:
        size = self._by_name[self._specs[0].tops[0]].num
        for top, array in memory.arrays.items():
            part = np.ascontiguousarray(array[memory.at : memory.at + size])
            self._by_name[top].take(torch.from_numpy(part.copy()).to(self._device))
        memory.at = (memory.at + size) % len(array)

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
        first, last = self._range(end, start)  # in the file's order
        if kwargs:
            self._all(kwargs, self.outputs if start is None else list(self._specs[last].tops), "diffs")
            for name, value in kwargs.items():
                self._write(name, value, "diff")
        self._backward(last, first)
        wanted = self.bottom_names[end] if end is not None else self.inputs
        return {name: self._blob(name).diff for name in dict.fromkeys([*wanted, *(diffs or ())])}

    def _backward(self, last: int, first: int) -> None:
        """Compute the diffs of the layers with these numbers, `last` first."""
        for i in range(last, first - 1, -1):
            self._call_back("before_backward", i)
        if self._tape is None or not (self._tape.first <= first and last <= self._tape.last):
            now = remembered(self.module)
            self._start()
            try:
                self._run(0, last, record=True, again=True)  # later layers may not accept this size
            finally:
                now()
        self._differentiate(first, last)
        for i in range(last, first - 1, -1):
            self._call_back("after_backward", i)

    def _differentiate(self, first: int, last: int) -> None:
        tape, self._tape = self._tape, None
        assert tape is not None  # backward, which calls this, has run the layers if nobody had
        values, names = tape.values, self._graph.names
        steps = self._between(first, last)
        read = {value for step in steps for value in step.bottoms}
        tops = [value for step in steps for value in step.tops if value not in read]
        # With force_backward Caffe calls every layer's backward, also where no gradient arrives.
        seeds = [
            v
            for v in tops
            if values[v].requires_grad and (self._force_backward or self._by_name[names[v]].has_diff)
        ]
        # A blob's diff is that of its first version in the range, because in-place layers overwrite it.
        versions: dict[str, int] = {}
        for step in steps:
            for value in (*step.bottoms, *step.tops):
                versions.setdefault(names[value], value)
        wanted = [value for value in versions.values() if values[value].requires_grad and value not in seeds]
        own = [p for step in steps for p in self.module.get_layer(step.key).parameters() if p.requires_grad]
        own = list(dict.fromkeys(own))
        if not seeds:
            return
        given = [torch.as_tensor(self._by_name[names[v]].diff).to(values[v]) for v in seeds]
        found = torch.autograd.grad(
            [values[v] for v in seeds], [*(values[v] for v in wanted), *own], given, allow_unused=True
        )
        for value, gradient in zip(wanted, found, strict=False):
            if gradient is not None:
                self._by_name[names[value]].diff[...] = gradient.cpu().numpy()
        for parameter, gradient in zip(own, found[len(wanted) :], strict=True):
            if gradient is not None:
                parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)

    def clear_param_diffs(self) -> None:
        """Set all parameters' diffs to 0."""
        for params in self._params.values():
            for param in params:
                param.diff[...] = 0

    # --------------------------------------------------------------------------------------- batches

    def forward_all(self, blobs=None, **kwargs) -> dict[str, np.ndarray]:
        """Run any number of items in batches of the net's size. The rest of the last batch is zeros."""
        found: dict[str, list] = {}
        for batch in self._batches(kwargs):
            for name, value in self.forward(blobs=blobs, **batch).items():
                found.setdefault(name, []).extend(value.copy())
        return self._cut(found, kwargs)

    def forward_backward_all(self, blobs=None, diffs=None, **kwargs) -> tuple[dict, dict]:
        """Like forward_all, with backward for each batch. kwargs: arrays of the inputs, and diffs of the outputs."""
        data = {name: value for name, value in kwargs.items() if name in self.inputs}
        rest = {name: value for name, value in kwargs.items() if name not in data}
        made: dict[str, list] = {}
        found: dict[str, list] = {}
        for batch, seeds in zip_longest(self._batches(data), self._batches(rest), fillvalue={}):
            for name, value in self.forward(blobs=blobs, **batch).items():
                made.setdefault(name, []).extend(value.copy())
            for name, value in self.backward(diffs=diffs, **seeds).items():
                found.setdefault(name, []).extend(value.copy())
        return self._cut(made, data), self._cut(found, data)

    def _batches(self, arrays: dict):
        if not arrays:
            return
        arrays = {name: np.asarray(value) for name, value in arrays.items()}
        size = self._blob(next(iter(arrays))).num
        count = len(next(iter(arrays.values())))
        for at in range(0, count, size):
            batch = {name: value[at : at + size] for name, value in arrays.items()}
            rest = size - len(next(iter(batch.values())))
            if rest:
                batch = {
                    n: np.concatenate([v, np.zeros((rest, *v.shape[1:]), v.dtype)]) for n, v in batch.items()
                }
            yield batch

    @staticmethod
    def _cut(found: dict[str, list], arrays: dict) -> dict[str, np.ndarray]:
        count = len(next(iter(arrays.values()), ()))
        return {name: np.asarray(items)[:count] for name, items in found.items()}

    # --------------------------------------------------------------------------------------- weights

    @as_runtime
    def reshape(self) -> None:
        """Apply the inputs' new shapes. The next call, or the next read of a blob, does this anyway."""

    @as_runtime
    def save(self, filename) -> None:
        """Write the parameters as a .caffemodel."""
        self._to_device()
        self.module.save_caffemodel(filename)

    @as_runtime
    def copy_from(self, filename) -> None:
        """Load the layers of that name from a .caffemodel or .caffemodel.h5."""
        self.module.load_caffemodel(filename)

    load_hdf5 = copy_from

    @as_runtime
    def save_hdf5(self, filename) -> None:
        """Write the parameters as Caffe's HDF5: data/LAYER/0, data/LAYER/1 and so on."""
        h5py = package("h5py", "save_hdf5")
        content, seen = io.BytesIO(), set()
        with h5py.File(content, "w") as file:
            data = file.create_group("data")
            for name, blobs in self._params.items():
                group = data.create_group(name)
                for i, blob in enumerate(blobs):
                    if id(blob.parameter) not in seen:  # a shared blob is its first layer's
                        group[str(i)] = blob.data
                    seen.add(id(blob.parameter))
        with written_whole(filename) as target:
            target.write(content.getbuffer())

    @as_runtime
    def share_with(self, other: Net) -> None:
        """Use the parameters of the other net's layers of the same names."""
        if not isinstance(other, Net):
            raise CaffeTypeError(f"share_with: expected a caffe.Net, got {describe(other)}")
        self.module.share_with(other.module)

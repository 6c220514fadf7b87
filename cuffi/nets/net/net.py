"""A Caffe net as a torch.nn.Module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ...base import (
    CaffeRuntimeError,
    CaffeTypeError,
    CaffeValueError,
    describe,
    fx_node,
    path_of,
    refuse_script,
    some,
)
from ..stock import blobs_of
from ..stock._late_checks import raise_if_refused
from ..stock.convolutions import Convolution
from .graph import Graph, Spec
from .parameter_groups import parameter_groups
from .phases import TEST, TRAIN
from .running import bind, from_channels_last, run, run_calls, to_channels_last
from .save import save
from .schedule import Schedule, results_of, schedule_of
from .weights import load


@dataclass
class Phase:
    """The net in training, or in testing."""

    graph: Graph
    # By blob: shapes, for the inputs' shapes in the file, and loss weights.
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    loss_weights: dict[str, float] = field(default_factory=dict)


class CaffeNet(nn.Module):
    """A whole Caffe net, made by `caffe_net`.

    Submodules have the layers' names (`net.conv1`; `.` becomes `_`), so `state_dict`, `parameters`, `to`, `compile` and
    DistributedDataParallel work as for any module. `train()` and `eval()` choose Caffe's phase.
    """

    def __init__(self, name: str, path: str, phases: dict[str, Phase]):
        super().__init__()
        self.net_name, self.path = name, path
        self.phases = phases
        self.notes: list[str] = []  # remarks on how the file was read
        # By layer's name: its submodules. Training and testing may have one each.
        self.keys: dict[str, list[str]] = {}
        # By submodule: its layer in the file, and lr_mult and decay_mult of its blobs.
        self.specs: dict[str, Spec] = {}
        self.multipliers: dict[str, list[tuple[float, float]]] = {}
        self.fixed: dict[str, bool] = {}  # submodules whose layer sets its own phase: is it TRAIN?
        self._schedules: dict[tuple, Schedule] = {}
        self._fuses = False

    if (
        TYPE_CHECKING
    ):  # a submodule is what its layer's type makes; torch's own type says that it may be a tensor

        def __getattr__(self, name: str) -> Any: ...

    # ------------------------------------------------------------------------------------------ calls

    def forward(self, *inputs: Tensor, end: str | None = None, blobs=None, **named: Tensor):
        """Run the net.

        Args:
            inputs, named: tensors for the net's inputs, in their order (`net.inputs`) or by the blobs' names. Batch and
                image size may differ from the file's, as far as the layers allow.
            end: a blob or a layer: compute only what it needs, and return it.
            blobs: names of blobs to return instead of the net's outputs. True: all blobs.

        Returns:
            the output; if there are several, a dict by their blobs' names. In training, blobs that are part of the
            loss are outputs, too. `net.loss(outputs)` adds them up. Shapes are Caffe's (`net.shapes`). Dtype and device
            are those of the parameters, unless autocast chooses another dtype.

        Raises:
            CaffeTypeError: an input is missing, unknown, or not a tensor.
            CaffeValueError: `end` or a name in `blobs` is not in the net, or shapes do not fit a layer. The message
                names the layer and its line in the file.
            CaffeRuntimeError: a CHECK of a ported layer failed, or the net was built only for the other phase.
        """
        compiling = torch.compiler.is_compiling()
        if not compiling:
            raise_if_refused()
            if (node := fx_node(self, self.path, inputs, named)) is not None:
                return node
        schedule = self._schedule(end, blobs)
        values = bind(self, schedule, inputs, named)
        if compiling:
            run_calls(self, schedule.calls, values)
        else:
            moved = self._fuses and to_channels_last(schedule, values)
            run(self, schedule, values, inputs, named)
            if moved:
                from_channels_last(schedule, values)
        if schedule.single:
            return values[schedule.results[0][1]]
        return {name: values[value] for name, value in schedule.results}

    def loss(self, outputs) -> Tensor:
        """The sum of the losses among a call's outputs, each times its loss_weight.

        Args:
            outputs: what the call returned: a tensor, or a dict of tensors by their blobs' names.

        Returns:
            a tensor without axes, in the losses' dtype.

        Raises:
            CaffeTypeError: `outputs`, or a loss among them, has another type.
            CaffeValueError: the phase has no loss, or it is not among the outputs.
        """
        weights = self.phase.loss_weights
        if not weights:
            raise CaffeValueError(f"{self.path}: no layer makes a loss in phase {self.phase_name}")
        if isinstance(outputs, Tensor):
            outputs = {next(iter(weights)): outputs}
        if not isinstance(outputs, Mapping):
            raise self._wrong("loss: outputs", "the net's outputs", outputs)
        terms: list[Tensor] = []
        for blob, weight in weights.items():
            if blob not in outputs:
                raise CaffeValueError(
                    f"{self.path}: loss: {blob!r} is not among the outputs {', '.join(map(str, some(outputs)))}"
                )
            if not isinstance(outputs[blob], Tensor):
                raise self._wrong(f"loss: {blob!r}", "a tensor", outputs[blob])
            term = outputs[blob].sum()
            terms.append(term if weight == 1 else term * weight)
        return sum(terms[1:], terms[0])

    def _wrong(self, argument: str, wanted: str, got) -> CaffeTypeError:
        return CaffeTypeError(f"{self.path}: {argument}: expected {wanted}, got {describe(got)}")

    def __prepare_scriptable__(self):
        refuse_script(self.path)

    # ------------------------------------------------------------------------------------------ schedules

    def _schedule(self, end, blobs) -> Schedule:
        if isinstance(blobs, str):
            raise self._wrong("blobs", "a list of names of blobs", blobs)
        try:
            key = (self.training, end, blobs if blobs is None or blobs is True else tuple(blobs))
            schedule = self._schedules.get(key)
        except TypeError:
            given = f"{describe(end)} and {describe(blobs)}"
            raise CaffeTypeError(f"{self.path}: end, blobs: expected names of blobs, got {given}") from None
        if schedule is None:
            schedule = self._schedules[key] = self.make_schedule(*key)
        return schedule

    def make_schedule(self, training: bool, end: str | None = None, blobs=None) -> Schedule:
        """Make the schedule of a forward in that phase that returns these outputs."""
        phase = self._phase(training)
        names, single = results_of(self.path, phase.graph, list(phase.loss_weights), end, blobs)
        results = tuple((name, phase.graph.latest[name]) for name in names)
        return schedule_of(self.get_layer, phase.graph, results, bool(end or blobs), single)

    def values_of(self, values: Iterable[int], inputs: dict[str, Tensor]) -> list[Tensor]:
        """Values of this phase's graph by their numbers, such as a top that a later layer overwrites in Caffe.

        Args:
            values: numbers, of `phase.graph.steps[i].tops`.
            inputs: tensors by the blobs of the inputs.
        """
        key = (self.training, "values", tuple(values))
        if key not in self._schedules:
            graph = self.phase.graph
            results = tuple((graph.names[value], value) for value in values)
            self._schedules[key] = schedule_of(self.get_layer, graph, results, True, False)
        schedule = self._schedules[key]
        found: list = bind(
            self, schedule, (), {k: v for k, v in inputs.items() if k in self.phase.graph.inputs}
        )
        run(self, schedule, found, (), inputs)
        return [found[value] for value in values]

    def _phase(self, training: bool) -> Phase:
        name = TRAIN if training else TEST
        if name not in self.phases:
            why = f": {note}" if (note := self.notes_on(name)) else ""
            raise CaffeRuntimeError(
                f"{self.path}: the net was built only for phase {next(iter(self.phases))}{why}"
            )
        return self.phases[name]

    def notes_on(self, phase: str) -> str:
        """Why the net was built without this phase, though both were wanted. Empty if it was not."""
        return next((note for note in self.notes if note.startswith(f"no {phase}: ")), "")

    # -------------------------------------------------------------------------------------- what it is

    @property
    def phase_name(self) -> str:
        """'TRAIN' after `train()`, 'TEST' after `eval()`."""
        return TRAIN if self.training else TEST

    @property
    def phase(self) -> Phase:
        """The graph, the shapes and the loss weights of this phase. CaffeRuntimeError if it was not built."""
        return self._phase(self.training)

    @property
    def inputs(self) -> list[str]:
        """The names of the input blobs of this phase, in the order of a call's tensors."""
        return list(self.phase.graph.inputs)

    @property
    def outputs(self) -> list[str]:
        """The names of the blobs that a call returns in this phase: blobs that no layer reads, and losses."""
        return [name for name, _ in self._schedule(None, None).results]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The blobs' shapes in this phase, by name, for the inputs' shapes in the file."""
        return self.phase.shapes

    def get_layer(self, key: str) -> Any:
        """A submodule by its own name.

        Args:
            key: the name that `state_dict` has: the layer's name, with `_` for `.`.

        Returns:
            The submodule.

        Raises:
            CaffeValueError: no layer has that name. The message lists the names.
        """
        module = self._modules.get(key) if isinstance(key, str) else None
        if module is None:
            known = ", ".join(some(self._modules))
            raise CaffeValueError(f"{self.path}: get_layer: no layer {key!r}. There are: {known}")
        return module

    @property
    def layers(self) -> dict[str, nn.Module]:
        """The layers of this phase by Caffe's names. Types that compute nothing, such as Input, have none."""
        steps = self.phase.graph.steps
        return {s.spec.name: self.get_layer(s.key) for s in steps if s.key}

    def parameter_groups(self, lr: float, weight_decay: float = 0.0) -> list[dict]:
        """Groups for a torch optimizer: each parameter with lr * lr_mult and weight_decay * decay_mult.

        Args:
            lr, weight_decay: numbers: a solver's base_lr and weight_decay.

        Returns:
            a dict with `params`, `lr`, `weight_decay`, `lr_mult` and `decay_mult` for each pair of multipliers.
            Parameters that require no gradient are left out. A shared parameter is in the group of its first layer.

        Raises:
            CaffeTypeError: `lr` or `weight_decay` is not a number.
        """
        return parameter_groups(self, lr, weight_decay)

    # -------------------------------------------------------------------------------------------- data

    def data_loaders(self, *, passes: int | None = None, workers: int = 0, seed: int = 0) -> dict:
        """The data layers of this phase, as torch DataLoaders.

            for batch in net.data_loaders(passes=1)["data"]:
                outputs = net(**batch)

        Data reads an LMDB (package lmdb) or a LevelDB (plyvel), ImageData a list of images (opencv-python-headless),
        HDF5Data a list of files (h5py). `transform_param` is applied as in Caffe: (x - mean) * scale of a random crop
        in TRAIN, of the centre in TEST, channels in the order blue, green, red. Paths are relative to the working
        directory, the prototxt's folder, or a folder above it.

        Args:
            passes: how many times to go through the data. None: endlessly, as Caffe does.
            workers: the number of processes that read.
            seed: for the order, the crops and the mirroring.

        Returns:
            by layer's name, a DataLoader of dicts: float32 tensors by blob, [batch_size, ...]. A layer with the name of
            one before it has its line, too: "data, line 9".

        Raises:
            CaffeValueError: a source is missing or damaged, or a field is unknown. The message names the layer's line.
            CaffeRuntimeError: a package is missing.
        """
        from ..data import data_loaders

        return data_loaders(self, passes=passes, workers=workers, seed=seed)

    # ----------------------------------------------------------------------------------------- weights

    def load_caffemodel(self, path, *more):
        """Load the parameters of .caffemodel or .caffemodel.h5 files, by the layers' names.

        Values are converted to each parameter's dtype, on its device.

        Args:
            path, more: the files. If several have a layer, the last one wins.

        Returns:
            a report: layers that were loaded, layers without weights, and layers that only the files have.

        Raises:
            CaffeTypeError: an argument is not a path.
            CaffeValueError: a file is not a caffemodel, or a layer's blobs have another number or shape. Nothing is
                loaded from such a file.
            CaffeRuntimeError: an .h5 file needs h5py, which is missing.
            OSError: a file cannot be read.
        """
        return load(self, [path_of(f"{self.path}: load_caffemodel: path", p) for p in (path, *more)])

    def save_caffemodel(self, path) -> None:
        """Write a .caffemodel in today's format, which Caffe and its tools can read, in float32.

        Args:
            path: the file.

        Raises:
            CaffeTypeError: not a path.
            CaffeValueError: the name ends in .h5 or .hdf5. HDF5 is read, and not written.
            OSError: the file cannot be written. An older file stays.
        """
        save(self, path_of(f"{self.path}: save_caffemodel: path", path))

    def to_onnx(self, path, *, dynamic_batch: bool = True):
        """Write the net in phase TEST as ONNX, run it by onnxruntime, and compare every blob with this net.

        Inputs and outputs have the blobs' names. DetectionOutput becomes ONNX's NonMaxSuppression. PATH.json gets the
        certificate. A net on another device is copied to the processor.

        Args:
            path: the file to write. What is there is replaced when the new file is whole.
            dynamic_batch: leave the batch's size free, if the net allows it.

        Returns:
            the certificate: `agrees`, `blobs` (name, shape, difference), `dynamic_batch`, `domains`. Print it.

        Raises:
            CaffeRuntimeError: a package is missing (onnx, onnxscript, onnxruntime), or a layer cannot be exported: a
                Python layer, or a ported one.
            CaffeTypeError: `path` is no path, or the net's numbers are not float32.
            OSError: the file cannot be written.
        """
        from .onnx import to_onnx

        return to_onnx(self, path, dynamic_batch=dynamic_batch)

    def fuse(self, fuses: bool = True) -> CaffeNet:
        """Make the net faster for inference: weights rest from now on.

        In eval, where no gradient is recorded (torch.no_grad, torch.inference_mode), a Convolution then computes the
        BatchNorm and the Scale after it, too: with s = scale / sqrt(variance + eps) it has the weights weight * s and
        the bias (bias - mean) * s + shift. These are kept from call to call. On a GPU, layers/depthwise_conv computes
        one with a group for each channel, and the ReLU or ReLU6 after it. On a processor, the layers between contiguous
        inputs and outputs run in channels_last, which is faster there. Parameters and state_dict do not change. A
        hook on one of the layers, torch.compile and the capture of a CUDA graph see the layers one by one.

        An assignment, an operation in place (`weight.mul_(2)`), `to` and `load_state_dict` are noticed: the next call
        has the new weights. A write through `weight.data` or a numpy array is not: call `fuse()` again.

        Args:
            fuses: False: one layer after the other again.

        Returns:
            the net.

        Raises:
            CaffeTypeError: `fuses` is no bool.
        """
        if not isinstance(fuses, bool):
            raise self._wrong("fuse: fuses", "a bool", fuses)
        self._fuses = fuses
        for module in self.modules():
            if isinstance(module, Convolution):
                module.reset()
        return self

    def share_with(self, other: CaffeNet) -> CaffeNet:
        """Use another net's blobs, in the layers that have the same name. Both nets must be on one device.

        Args:
            other: the net whose blobs are taken. Training one net then trains both.

        Returns:
            this net.

        Raises:
            CaffeTypeError: `other` is not a CaffeNet.
            CaffeValueError: a layer's blobs differ in number or in shape.
        """
        if not isinstance(other, CaffeNet):
            raise self._wrong("share_with: other", "a CaffeNet", other)
        for name, keys in self.keys.items():
            theirs = next(
                (b for key in other.keys.get(name, ()) if (b := blobs_of(other.get_layer(key)))), []
            )
            for key in keys:
                own = blobs_of(module := self.get_layer(key))
                if not own or not theirs:
                    continue
                if [b.shape for _, b in own] != [b.shape for _, b in theirs]:
                    shapes = " and ".join(str([list(b.shape) for _, b in blobs]) for blobs in (own, theirs))
                    raise CaffeValueError(f"{self.path}: share_with: layer {name!r}: blobs of {shapes}")
                for (attribute, _), (_, blob) in zip(own, theirs, strict=True):
                    setattr(module, attribute, blob)
        return self

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_schedules": {}}

    def _apply(self, fn, *args, **kwargs) -> CaffeNet:
        """torch's hook for `to`, `double` and `cuda`. Buffers that layers share stay shared, as parameters do."""
        places = [(layer._buffers, name) for layer in self.children() for name in layer._buffers]
        before = [buffers[name] for buffers, name in places]
        super()._apply(fn, *args, **kwargs)
        moved = {}
        for (buffers, name), old in zip(places, before, strict=True):
            buffers[name] = moved.setdefault(id(old), buffers[name])
        return self

    def __setattr__(self, name: str, value) -> None:
        super().__setattr__(name, value)
        # Schedules join layers by their types, and a submodule may have been replaced.
        if isinstance(value, nn.Module):
            self._schedules.clear()

    def train(self, mode: bool = True) -> CaffeNet:
        """Go to the phase TRAIN, or to TEST with mode=False, as `eval()` does. Layers whose mode is fixed keep it.

        Args:
            mode: True for TRAIN.

        Returns:
            the net itself.

        Raises:
            CaffeTypeError: mode is no bool.
            CaffeRuntimeError: the net was built without this phase.
        """
        if not isinstance(mode, bool):
            raise self._wrong("train: mode", "a bool", mode)
        self._phase(mode)
        super().train(mode)
        for key, training in self.fixed.items():
            self.get_layer(key).train(training)
        return self

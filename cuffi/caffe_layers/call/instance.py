"""One C++ layer object: its definition, its calls' sites, and the calls.

A Caffe layer object holds the state of one call: Backward reads what Forward left in its members.
"""

import atexit
import functools
import struct
import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ...backends import BACKENDS
from ...runtime import CaffeRuntimeError, Layer
from ...runtime.extension import extension
from ...runtime.memory import place, view_memory
from . import services

MODES = CPU, GPU = "cpu", "gpu"  # Caffe's modes, as users name them
# CAFFE_MOST_AXES and CAFFE_NO_TOKEN, which are also needed without a library (test_surface.py checks them).
MOST_AXES, NO_TOKEN = 32, -1
DTYPES = (torch.float32, torch.float64)
Shape = tuple[int, ...]

_exiting = threading.Event()
atexit.register(_exiting.set)


@functools.cache
def caffe_package(module: str) -> Layer:
    """The Layer of a Caffe layer's package, by the package's name."""
    return Layer(module, dtypes=DTYPES)


def phase_of(training: bool) -> int:
    """Caffe's Phase of a module's mode: TRAIN is 0, TEST is 1."""
    return int(not training)


class Site(NamedTuple):
    """The device, stream, dtype and phase of a call.

    Calls with the same site may use the same instance, one after the other.
    """

    backend: str
    device: int
    stream: int
    dtype: torch.dtype
    phase: int
    capture: bool = False  # a CUDA graph is captured

    @property
    def on_host(self) -> bool:
        return self.device < 0

    @property
    def torch_device(self) -> torch.device:
        kind = BACKENDS[self.backend].device
        return torch.device(kind) if self.on_host else torch.device(kind, self.device)


class Facts(NamedTuple):
    """The numbers of bottoms and tops of a layer, by the names of Caffe's functions. -1: not fixed."""

    exact_num_bottom_blobs: int
    min_bottom_blobs: int
    max_bottom_blobs: int
    exact_num_top_blobs: int
    min_top_blobs: int
    equal_num_bottom_top_blobs: int
    allow_force_backward: tuple[bool, ...]

    def tops(self, bottoms: int) -> int | None:
        """The number of tops if they have no names; None if the layer does not fix it."""
        if self.exact_num_top_blobs >= 0:
            return self.exact_num_top_blobs
        if self.min_top_blobs >= 0:
            return self.min_top_blobs
        return bottoms if self.equal_num_bottom_top_blobs > 0 else None


class Definition:
    """A layer's type and parameters, from which instances are made.

    Args:
        module: the layer package's name.
        type: Caffe's name of the layer.
        parameter: the LayerParameter, serialized.
        bottoms, tops: their names, if they have any. A top with the name of a bottom is computed in place. In a net it
            has memory of its own, and a name of its own: that of the bottom, with a `'`.
        keeps_bottoms: compute in place on a copy of the bottom. So a net runs layers that CHECK that they are in place.

    Attributes:
        in_place: the tops that are computed in place, and their bottoms.
        apart: the tops that are in place in the file, but have their own memory here; and their bottoms.
    """

    def __init__(
        self,
        module: str,
        type: str,
        parameter: bytes,
        bottoms: tuple = (),
        tops: tuple = (),
        keeps_bottoms: bool = False,
    ):
        self.keeps_bottoms = keeps_bottoms
        self.layer, self.type, self.parameter = caffe_package(module), type, parameter
        self.bottoms, self.tops = bottoms, tops
        self.name = self.layer.name
        self.in_place = {i: bottoms.index(name) for i, name in enumerate(tops) if name in bottoms}
        self.apart = {
            i: bottoms.index(b)
            for i, t in enumerate(tops)
            if (b := t.removesuffix("'")) != t and b in bottoms
        }
        self._nothing: dict[torch.device, Tensor] = {}

    def __reduce__(self):
        names = self.bottoms, self.tops
        return Definition, (self.layer.module, self.type, self.parameter, *names, self.keeps_bottoms)

    def library(self, backend: str):
        """The layer's library, connected to the services."""
        library = self.layer.library(backend)
        if not hasattr(library, "services"):
            lib = library.lib
            made = services.Services(library.ffi, lib, not BACKENDS[backend].on_host)
            vars(library)["services"] = made
            if lib.caffe_layer_services_ffi(made.address):
                self.fail(library, "services")
        return library

    def create(self, library, dtype: torch.dtype, phase: int) -> int:
        """A new C++ object's handle."""
        ffi, lib = library.ffi, library.lib
        # Append LayerParameter.phase, field 10. If a field comes twice, protobuf takes the last one.
        parameter = self.parameter + bytes([10 << 3, phase])
        texts = [ffi.from_buffer(text) for text in (self.type.encode() + b"\0", parameter)]
        type, message = (int(ffi.cast("uintptr_t", text)) for text in texts)
        handle = lib.caffe_layer_create_ffi(type, message, len(parameter), library.codes[dtype])
        if handle < 0:
            self.fail(library, "created")
        return handle

    def facts_of(self, library, handle: int) -> Facts:
        said = library.ffi.new("caffe_layer_facts_record *")
        if library.lib.caffe_layer_facts_ffi(handle, int(library.ffi.cast("uintptr_t", said))):
            self.fail(library, "facts")
        *numbers, allow = (getattr(said, name) for name in Facts._fields)
        return Facts(*numbers, tuple(map(bool, allow)))

    def facts(self, backend: str) -> Facts:
        """The layer's facts before SetUp."""
        library = self.library(backend)
        handle = self.create(library, torch.float64, 0)
        try:
            return self.facts_of(library, handle)
        finally:
            library.lib.caffe_layer_destroy_ffi(handle)

    def fail(self, library, doing: str):
        """Raise the last error of a service or of the core."""
        if failure := services.take_failure():
            raise failure
        text = library.text(library.lib.caffe_last_error()) or "failed without a message"
        raise CaffeRuntimeError(f"{self.name}: {doing}: {text}")

    def no_code(self, function: str, library, hint: str = "") -> CaffeRuntimeError:
        """The error for a function without code, with the line and text of this thread's last NOT_IMPLEMENTED."""
        said = library.text(library.lib.caffe_last_error())
        return CaffeRuntimeError(
            f"{self.name}: {self.type}'s own {function} is NOT_IMPLEMENTED ({said}).{hint}"
        )

    def bottom_name(self, i: int) -> str:
        return f"bottom '{self.bottoms[i]}'" if self.bottoms else f"bottom {i}"

    def address(self, tensor: Tensor) -> int:
        """A tensor's address. An empty tensor has none, and gets an address that nobody reads."""
        try:
            if address := tensor.data_ptr():
                return address
        except RuntimeError:
            pass
        if tensor.numel():
            wanted = "a tensor that has memory (not a ZeroTensor, a freed one or one of torch.vmap's)"
            raise self.layer.wrong("bottom or gradient", wanted, tensor)
        if tensor.device not in self._nothing:
            self._nothing[tensor.device] = torch.empty(1, dtype=torch.float64, device=tensor.device)
        return self._nothing[tensor.device].data_ptr()


class Record:
    """The record of one call for the C++ object: the structs of cuffi/caffe_layers/include/caffe/layer_record.h.

    Args:
        library: its cffi knows the structs.
        bottoms, tops, parameters: the number of each.
    """

    def __init__(self, library, bottoms: int, tops: int, parameters: int = 0):
        ffi, count = library.ffi, bottoms + tops + parameters
        self.head = head = ffi.new("caffe_call_record *", {"blobs": count})
        self.address = int(ffi.cast("uintptr_t", head))
        self.bytes = ffi.buffer(head, ffi.offsetof("caffe_call_record", "blobs", count))
        head.bottoms, head.tops, head.parameters = bottoms, tops, parameters
        blobs = [head.blobs[i] for i in range(count)]
        self.bottoms, self.tops = blobs[:bottoms], blobs[bottoms : bottoms + tops]
        self.parameters = blobs[bottoms + tops :]
        for blob in blobs:
            put(blob, ())


def put(blob, shape: Shape, data: int = 0, diff: int = 0, flags: int = 0, in_place_of: int = -1) -> None:
    """Fill in a caffe_blob_record."""
    blob.data, blob.data_token, blob.diff, blob.diff_token = data, NO_TOKEN, diff, NO_TOKEN
    blob.flags, blob.in_place_of, blob.axes = flags, in_place_of, len(shape)
    blob.shape[0 : len(shape)] = shape


def shape_of(blob) -> Shape:
    """The shape in a caffe_blob_record."""
    return tuple(blob.shape[0 : blob.axes])


def shapes_of(tensors: Iterable[Tensor]) -> tuple[Shape, ...]:
    return tuple(tuple(t.shape) for t in tensors)


class Instance:
    """One C++ layer object, set up.

    Args:
        definition: the layer's type and parameters.
        site: where its calls run.
        mode: CPU or GPU, for LayerSetUp and Reshape.
        bottoms: tensors, or shapes if there is no data.
        iteration: of the training loop; -1: unknown.

    Attributes:
        written: the numbers of the parameter blobs that the last Forward wrote to.
    """

    def __init__(
        self,
        definition: Definition,
        site: Site,
        mode: str,
        bottoms: Sequence[Tensor | Shape],
        iteration: int,
    ):
        self.definition, self.site = definition, site
        self._calls = extension(definition.name)
        self.library = library = definition.library(site.backend)
        self.lib = library.lib
        self.handle = definition.create(library, site.dtype, site.phase)
        self.facts = definition.facts_of(library, self.handle)
        said = len(definition.tops) if definition.tops else self.facts.tops(len(bottoms))
        self.tops_guessed = said is None
        tops = 1 if said is None else said
        record = Record(library, len(bottoms), tops)
        for blob, bottom in zip(record.bottoms, bottoms, strict=True):
            if isinstance(bottom, Tensor):
                put(blob, tuple(bottom.shape), definition.address(bottom))
            else:
                put(blob, bottom)
        for top, bottom in definition.in_place.items():
            record.tops[top].in_place_of = bottom
        self.place(record, mode, iteration)
        if self.call("setup", record):
            raise definition.no_code("LayerSetUp or Reshape", library)
        self.weights = [blob.loss_weight for blob in record.tops]
        self.top_shapes = tuple(shape_of(blob) for blob in record.tops)
        self.parameters, self.written = record.head.parameters, []
        both = definition.in_place, definition.apart
        places = [[bottom_of.get(i, -1) for i in range(tops)] if bottom_of else [] for bottom_of in both]
        runners = (library.runner(f"caffe_layer_{name}") for name in ("forward", "backward"))
        self.counts = len(bottoms), tops, self.parameters
        sizes = *self.counts, *map(len, places)
        numbers = (self.handle, *runners, library.set_num_threads, *sizes, *places[0], *places[1])
        self.core = struct.pack(f"{len(numbers)}q", *numbers)  # of CoreCall in edge/call_caffe.cpp

    def __del__(self):
        if hasattr(self, "handle") and not _exiting.is_set():
            self.lib.caffe_layer_destroy_ffi(self.handle)

    def place(self, record: Record, mode: str, iteration: int) -> None:
        """Write the call's site and mode into a record."""
        head, site = record.head, self.site
        head.mode = self.lib.CAFFE_MODE_CPU if mode == CPU else self.lib.CAFFE_MODE_GPU
        head.device, head.stream, head.phase = site.device, site.stream, site.phase
        head.iteration = -1 if site.capture else iteration

    def call(self, function: str, record: Record) -> int:
        """Call a C function. Returns 0 or CAFFE_STATUS_NOT_IMPLEMENTED; raises for any other status."""
        if self.site.device < 0:
            self.lib.caffe_set_num_threads(torch.get_num_threads())
        status = getattr(self.lib, f"caffe_layer_{function}_ffi")(self.handle, record.address)
        if status not in (0, self.lib.CAFFE_STATUS_NOT_IMPLEMENTED) or services.failed():
            self.definition.fail(self.library, function)
        return status

    def initial_blobs(self) -> list[Tensor]:
        """Copies of the parameter blobs as the layer's fillers left them, on the CPU. Sets `multipliers`."""
        blobs, ffi = [], self.library.ffi
        self.multipliers: list[tuple[float, float]] = []  # lr_mult and decay_mult, as SetUp left them
        for i in range(self.parameters):
            record = ffi.new("caffe_parameter_record *")
            if self.lib.caffe_layer_parameter_ffi(self.handle, i, int(ffi.cast("uintptr_t", record))):
                self.definition.fail(self.library, "parameter")
            shape = shape_of(record.blob)
            values = view_memory(record.blob.data, torch.Size(shape).numel(), self.site.dtype, place(-1))
            blobs.append(values.clone().view(shape))
            self.multipliers.append((record.lr_mult, record.decay_mult))
        return blobs

    # ---------------------------------------------------------------------------------------- calls

    def reshape(self, mode: str, shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
        """The tops' shapes for bottoms of these shapes, by the layer's Reshape."""
        record = Record(self.library, *self.counts)
        self.place(record, mode, -1)
        for blob, shape in zip(record.bottoms, shapes, strict=True):
            put(blob, shape)
        for i, blob in enumerate(record.tops):
            put(blob, (), in_place_of=self.definition.in_place.get(i, -1))
        if self.call("reshape", record):
            raise self.definition.no_code("Reshape", self.library)
        return tuple(shape_of(blob) for blob in record.tops)

    def forward(
        self, mode: str, iteration: int, bottoms, blobs, wanted, expected=None, before=None
    ) -> list[Tensor] | None:
        """Run Reshape and Forward. Returns the tops; None if the layer has no such code.

        Args:
            wanted: for each bottom, then each blob: will its gradient be needed?
            expected: the probable shapes of the tops.
            before: the tops' values before Forward, for tests. Default: undefined.
        """
        given = expected if before is None else tuple(top.clone() for top in before)
        tops = self._calls.run_forward(self, mode, iteration, (*bottoms, *blobs), wanted, given)
        return None if tops is None else list(tops)

    def without_top(self, i: int) -> None:
        """Forward gave a top no shape: the layer has no top at all, or it has fewer, which is an error."""
        if not self.tops_guessed:
            name = self.definition.tops[i] if self.definition.tops else i
            raise CaffeRuntimeError(
                f"{self.definition.name}: the layer gives top {name!r} no shape: it has fewer tops"
            )

    def backward(
        self, mode: str, iteration: int, bottoms, tops, blobs, top_diffs, wanted, before=None
    ) -> list[Tensor | None] | None:
        """Run Backward after this instance's forward.

        Returns the wanted gradients of bottoms and blobs; None if the layer has no such code.

        Args:
            before: the values of these gradients before Backward, for tests. Default: undefined for bottoms (the top's
                diff, in `apart`), 0 for blobs.
        """
        before = None if before is None else tuple(before)
        tensors = (*bottoms, *blobs, *tops, *top_diffs)
        diffs = self._calls.run_backward(self, mode, iteration, tensors, wanted, before)
        return None if diffs is None else list(diffs)

    # Called by C.

    def address(self, tensor: Tensor) -> int:
        return self.definition.address(tensor)

    def fail(self, doing: str):
        self.definition.fail(self.library, doing)

    def result(self, shape: Shape, address: int, token: int, top: Tensor | None, others) -> Tensor:
        """The tensor of a result: `top`, one that a service allocated, or one of `others` that shares its memory."""
        site, count = self.site, torch.Size(shape).numel()
        if top is not None and top.shape == shape and (not count or top.data_ptr() == address):
            return top
        if not count:
            return torch.empty(shape, dtype=site.dtype, device=site.torch_device)
        if token in services.memory:
            return services.memory.pop(token).view(site.dtype)[:count].view(shape)
        for tensor in others:
            if tensor is not None and tensor.numel() == count and tensor.data_ptr() == address:
                return tensor.view(shape)
        raise CaffeRuntimeError(
            f"{self.definition.name}: a result of shape {list(shape)} lies in memory of unknown origin"
        )

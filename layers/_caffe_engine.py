"""C++ layer objects: how they are made, called, and shared by the calls of one module.

A Caffe layer object holds the state of one call: what Forward left in its members is what Backward reads. So
calls that overlap (several forwards before a backward, threads, streams) each get an object of their own.
"""

import atexit
import contextlib
import ctypes
import functools
import itertools
import threading
import weakref
from collections import defaultdict
from typing import NamedTuple

import torch
from torch import Tensor

from . import _caffe_services as services
from ._caffe_record import (
    AXES,
    BLOBS,
    DATA,
    DATA_UNDEFINED,
    DEVICE,
    DIFF,
    DIFF_UNDEFINED,
    IN_PLACE,
    ITERATION,
    MODE,
    PHASE,
    STREAM,
    WANTED,
    Record,
    Shape,
    shapes_of,
)
from ._runtime import CaffeRuntimeError, CaffeValueError, Layer

CPU, GPU = 0, 1  # which of the layer's functions: Forward_cpu or Forward_gpu
MODES = {"cpu": CPU, "gpu": GPU}
NOT_IMPLEMENTED = 2  # a status
DTYPES = {torch.float32: 0, torch.float64: 1}
TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-12}

_exiting = threading.Event()
atexit.register(_exiting.set)


@functools.cache
def layer_of(module: str) -> Layer:
    """A Caffe layer's libraries, by the name of its package."""
    return Layer(module, dtypes=tuple(DTYPES))


def device_guard(device: int):
    return contextlib.nullcontext() if device < 0 else torch.cuda.device(device)


class Site(NamedTuple):
    """Where calls run that may use the same layer objects one after the other."""

    backend: str
    device: int
    stream: int
    dtype: torch.dtype
    phase: int
    capture: bool = False  # a CUDA graph is captured

    @property
    def torch_device(self) -> torch.device:
        return torch.device("cpu") if self.device < 0 else torch.device("cuda", self.device)


class Facts(NamedTuple):
    """What a layer says of itself; -1: nothing."""

    exact_bottoms: int
    least_bottoms: int
    most_bottoms: int
    exact_tops: int
    least_tops: int
    most_tops: int
    equal_bottoms_tops: int
    auto_tops: int
    is_neuron: int
    is_loss: int

    def tops(self, bottoms: int) -> int | None:
        """How many there are if nobody names them; None: it does not say."""
        if self.exact_tops >= 0:
            return self.exact_tops
        if self.least_tops >= 0:
            return self.least_tops
        return bottoms if self.equal_bottoms_tops > 0 else None


class Instance:
    """One C++ layer object, set up."""

    def __init__(
        self, engine: "Engine", site: Site, mode: int, shapes: tuple[Shape, ...], addresses: list[int]
    ):
        self.engine = weakref.proxy(engine)  # which holds the instances that are free
        self.site, self.handle = site, -1
        # For whose calls the records are filled in, but for addresses.
        self.shortcut = self.backward_for = None
        self.library = engine.library(site.backend)
        self.lib = self.library.lib
        parameter = engine.parameter + bytes(
            [10 << 3, site.phase]
        )  # LayerParameter.phase: the last one counts
        kind, text = (ctypes.create_string_buffer(s) for s in (engine.type.encode(), parameter))
        self.handle = self.lib.caffe_layer_create_ffi(
            ctypes.addressof(kind), ctypes.addressof(text), len(parameter), DTYPES[site.dtype]
        )
        if self.handle < 0:
            engine.fail(self.library, "created")
        words = (ctypes.c_int64 * 32)()
        self._call("caffe_layer_facts", ctypes.addressof(words))
        self.facts = Facts(*words[: len(Facts._fields)])
        said = len(engine.tops) if engine.tops else self.facts.tops(len(shapes))
        self.tops_guessed = said is None
        tops = 1 if said is None else said
        self.record = Record(len(shapes), tops)
        for at, shape, address in zip(self.record.bottoms, shapes, addresses, strict=True):
            self.record.put(at, shape, address)
        for top, bottom in engine.in_place.items():
            self.record.put(self.record.tops[top], (), flags=IN_PLACE | bottom << 8)
        self._place(self.record, mode)
        if self._call("caffe_layer_setup", self.record.address):
            raise engine.no_code("LayerSetUp or Reshape", self.library)
        self.weights = [self.record.loss_weight(at) for at in self.record.tops]
        self.top_shapes = tuple(self.record.shape(at) for at in self.record.tops)
        blobs = self.record.words[BLOBS]
        self.record, self.backward_record = (Record(len(shapes), tops, blobs) for _ in range(2))
        self._place(self.record, mode)

    def __del__(self):
        if self.handle >= 0 and not _exiting.is_set():
            self.lib.caffe_layer_destroy_ffi(self.handle)

    def _place(self, record: Record, mode: int) -> None:
        words, site = record.words, self.site
        words[MODE], words[DEVICE], words[STREAM], words[PHASE] = mode, site.device, site.stream, site.phase
        words[ITERATION] = -1 if site.capture else self.engine.iteration

    def _call(self, function: str, address: int) -> int:
        """0, or NOT_IMPLEMENTED; any other status raises."""
        if self.site.device < 0:
            self.lib.caffe_set_num_threads(torch.get_num_threads())
        status = getattr(self.lib, function + "_ffi")(self.handle, address)
        if status not in (0, NOT_IMPLEMENTED) or services.thread.failure:
            self.engine.fail(self.library, function.removeprefix("caffe_layer_"))
        return status

    def initial_blobs(self) -> list[Tensor]:
        """Copies of the parameter blobs as the layer's fillers left them, on the CPU."""
        blobs = []
        for i in range(len(self.record.blobs)):
            record = Record(1, 0)
            (at,) = record.bottoms
            status = self.lib.caffe_layer_parameter_ffi(self.handle, i, record.address + 8 * at)
            if status:
                self.engine.fail(self.library, "parameter")
            shape, address = record.shape(at), record.words[at + DATA]
            count = torch.Size(shape).numel()
            values = torch.empty(0, dtype=self.site.dtype)
            if count:
                values = services.view_memory(address, count, self.site.dtype, services.HOST)
            blobs.append(values.clone().view(shape))
        return blobs

    # ------------------------------------------------------------------------------------- forward

    def forward(self, mode: int, bottoms: list[Tensor], blobs: list[Tensor], wanted) -> list[Tensor] | None:
        """Reshape and Forward. None if the layer has no such code.

        Args:
            wanted: for each bottom, then each blob, whether Backward will be asked for its gradient.
        """
        record, engine = self.record, self.engine
        self.shortcut = None  # the record is no longer as it left it
        self._place(record, mode)
        shapes = shapes_of(bottoms)
        expected = engine.top_shapes.get(shapes, (None,) * len(record.tops))
        tops = [
            bottoms[engine.in_place[i]]
            if i in engine.in_place
            else None
            if shape is None
            else torch.empty(shape, dtype=self.site.dtype, device=self.site.torch_device)
            for i, shape in enumerate(expected)
        ]
        for at, tensor, want in zip(record.bottoms + record.blobs, bottoms + blobs, wanted, strict=True):
            record.put(at, tuple(tensor.shape), engine.address(tensor), flags=WANTED if want else 0)
        for i, (at, top) in enumerate(zip(record.tops, tops, strict=True)):
            if i in engine.in_place:
                record.put(
                    at, tuple(top.shape), engine.address(top), flags=IN_PLACE | engine.in_place[i] << 8
                )
            elif top is None:
                record.put(at, ())
            else:
                record.put(at, tuple(top.shape), engine.address(top), flags=DATA_UNDEFINED)
        if self._call("caffe_layer_forward", record.address):
            return None
        if self._without_tops():
            engine.weights = []
            return []
        tops = [
            self.result(record, at, DATA, top, bottoms + blobs)
            for at, top in zip(record.tops, tops, strict=True)
        ]
        engine.expect(shapes, shapes_of(tops))
        return tops

    def _without_tops(self) -> bool:
        """Is the top that was taken for granted none of the layer's? It has no shape then."""
        words = self.record.words
        bare = [i for i, at in enumerate(self.record.tops) if not words[at + DATA] and not words[at + AXES]]
        if bare and not self.tops_guessed:
            name = self.engine.tops[bare[0]] if self.engine.tops else bare[0]
            raise CaffeRuntimeError(
                f"{self.engine.name}: the layer gives top {name!r} no shape: it has fewer tops"
            )
        return bool(bare)

    def result(
        self, record: Record, at: int, word: int, given: Tensor | None, others: list[Tensor]
    ) -> Tensor:
        """The tensor whose memory holds a result: the one given, one made by callback, or one the layer shares."""
        shape, address, token = record.shape(at), record.words[at + word], record.words[at + word + 1]
        count = torch.Size(shape).numel()
        if given is not None and given.shape == shape and (not count or given.data_ptr() == address):
            return given
        if not count:
            return torch.empty(shape, dtype=self.site.dtype, device=self.site.torch_device)
        if token in services.memory:
            return services.memory.pop(token).view(self.site.dtype)[:count].view(shape)
        for other in others:
            if other is not None and other.numel() == count and other.data_ptr() == address:
                return other.view(shape)
        raise CaffeRuntimeError(
            f"{self.engine.name}: a result of shape {list(shape)} lies in memory of unknown origin"
        )

    # ------------------------------------------------------------------------------------ backward

    def backward(self, mode, bottoms, tops, blobs, top_diffs, wanted) -> list[Tensor | None] | None:
        """The gradients of bottoms and blobs, where wanted, after this instance's forward. None if there is no code."""
        record, engine = self.backward_record, self.engine
        self.backward_for = None
        self._place(record, mode)
        sources = {bottom: top for top, bottom in engine.in_place.items()}
        diffs = []
        for i, (at, bottom) in enumerate(zip(record.bottoms, bottoms, strict=True)):
            want, diff, flags = wanted[i], None, 0
            if i in sources:
                diff = top_diffs[sources[i]]
            elif want:
                diff, flags = torch.empty_like(bottom), DIFF_UNDEFINED
            flags |= WANTED if want else 0
            address = 0 if diff is None else engine.address(diff)
            record.put(at, tuple(bottom.shape), engine.address(bottom), address, flags)
            diffs.append(diff)
        for i, (at, top, diff) in enumerate(zip(record.tops, tops, top_diffs, strict=True)):
            flags = IN_PLACE | engine.in_place[i] << 8 if i in engine.in_place else 0
            record.put(at, tuple(top.shape), engine.address(top), engine.address(diff), flags)
        for at, blob, want in zip(record.blobs, blobs, wanted[len(bottoms) :], strict=True):
            diff = torch.zeros_like(blob) if want else None  # Caffe accumulates
            address = engine.address(diff) if want else 0
            record.put(at, tuple(blob.shape), engine.address(blob), address, WANTED if want else 0)
            diffs.append(diff)
        if self._call("caffe_layer_backward", record.address):
            return None
        return [
            self.result(record, at, DIFF, diff, top_diffs) if want else None
            for at, diff, want in zip(record.bottoms + record.blobs, diffs, wanted, strict=True)
        ]

    def prepare_backward(self, shapes: list[Shape]) -> None:
        """Fill in the record for the mode of the last forward and these shapes, in the record's order."""
        record = self.backward_record
        self._place(record, self.record.words[MODE])
        for at, shape in zip(record.bottoms + record.tops + record.blobs, shapes, strict=True):
            record.put(at, tuple(shape))


class Engine:
    """What a module and its replicas share: the layer's definition and its instances.

    Copying and pickling give one without instances, which are made again when they are needed.

    Args:
        module: the layer package's name.
        type: Caffe's name of the layer.
        parameter: the LayerParameter, serialized.
        bottoms, tops: names, where they were given. A top that has a bottom's name is computed in place.
    """

    def __init__(self, module: str, type: str, parameter: bytes, bottoms: tuple = (), tops: tuple = ()):
        self.layer, self.type, self.parameter, self.bottoms, self.tops = (
            layer_of(module),
            type,
            parameter,
            bottoms,
            tops,
        )
        self.name = self.layer.name
        self.in_place = {i: bottoms.index(name) for i, name in enumerate(tops) if name in bottoms}
        self.iteration = -1  # of the training loop, where the module was told
        self.host_mode = None  # CPU or GPU, once it is known which of them the layer has code for
        self.pools: dict[Site, list[Instance]] = defaultdict(list)
        self.top_shapes: dict[tuple[Shape, ...], tuple[Shape, ...]] = {}
        self.captured: list[
            Instance
        ] = []  # their memory is part of CUDA graphs: never used again, never freed
        # Those that wait for a backward. Held here, or the collector of cycles would destroy an instance together with
        # the Call that then hands it back.
        self.lent: set[Instance] = set()
        # Known once it is set up:
        self.blob_shapes: tuple[Shape, ...] | None = None
        self.set_up_shapes: tuple[Shape, ...] = ()
        self.weights: list[float] = []
        self.lock = threading.RLock()
        self._nothing: dict[torch.device, Tensor] = {}

    def __reduce__(self):
        return Engine, (self.layer.module, self.type, self.parameter, self.bottoms, self.tops)

    def __deepcopy__(self, memo):
        return Engine(*self.__reduce__()[1])

    def library(self, backend: str):
        library = self.layer.library(backend)
        if not hasattr(library, "services"):
            library.services = services.HostServices(backend == "cuda")
            if library.lib.caffe_layer_services_ffi(library.services.address):
                self.fail(library, "services")
        return library

    def fail(self, library, doing: str):
        """Raise what a service or the engine said last."""
        if failure := services.take_failure():
            raise failure
        text = library._text(library.lib.caffe_last_error()) or "failed without saying why"
        raise CaffeRuntimeError(f"{self.name}: {doing}: {text}")

    def address(self, tensor: Tensor) -> int:
        """A tensor's address; an empty one has none, and is given one that is never looked at."""
        if address := tensor.data_ptr():
            return address
        if tensor.numel():
            raise self.layer.wrong(
                "bottom", "a tensor that has memory (not a ZeroTensor or a freed one)", tensor
            )
        if tensor.device not in self._nothing:
            self._nothing[tensor.device] = torch.empty(1, dtype=torch.float64, device=tensor.device)
        return self._nothing[tensor.device].data_ptr()

    # ------------------------------------------------------------------------------------ instances

    def acquire(self, site: Site, mode: int) -> Instance:
        """An instance for one call, the one used last if possible: what some layers count, they count in it."""
        try:
            return self.pools[site].pop()
        except IndexError:
            pass
        if site.capture and (warm := self._warm(site)):
            return warm
        # Set up as the first one was: what comes is then checked by the layer's own Reshape. Its fillers' values are
        # not used, so they must not move torch's generators either.
        with services.replaying({}):
            return Instance(self, site, mode, self.set_up_shapes, [0] * len(self.set_up_shapes))

    def _warm(self, site: Site) -> Instance | None:
        """For a CUDA graph, an instance from another stream.

        It has been to the host already, where a graph cannot go.
        """
        for other, pool in list(self.pools.items()):
            if other._replace(stream=site.stream, capture=True) == site:
                try:
                    instance = pool.pop()
                except IndexError:
                    continue
                instance.site = site
                return instance
        return None

    def release(self, instance: Instance) -> None:
        """The instance's call is over."""
        (self.captured if instance.site.capture else self.pools[instance.site]).append(instance)

    def set_up(
        self, site: Site, mode: int, shapes: tuple[Shape, ...], addresses: list[int], draw: bool
    ) -> Instance:
        """The first instance. draw: its fillers draw from torch's generators."""
        with contextlib.nullcontext() if draw else services.replaying({}):
            instance = Instance(self, site, mode, shapes, addresses)
        self.weights = [weight or 1.0 for weight in instance.weights]
        self.expect(shapes, instance.top_shapes)
        self.set_up_shapes = shapes
        return instance

    # ---------------------------------------------------------------------------------------- calls

    def modes(self, site: Site, forced: int | None) -> tuple[int, ...]:
        """Which of the layer's functions to try, in this order: on the host its CPU code, else its kernels."""
        if site.backend == "cuda":
            return (GPU,)
        if forced is not None:
            return (forced,)
        return (CPU, GPU) if self.host_mode is None else (self.host_mode,)

    def forward(
        self, site: Site, forced: int | None, bottoms, blobs, wanted
    ) -> tuple[Instance, int, list[Tensor]]:
        """(the instance that ran it, in which mode, its tops)."""
        modes = self.modes(site, forced)
        for mode in modes:
            instance = self.acquire(site, mode)
            tops = instance.forward(mode, bottoms, blobs, wanted)
            if tops is not None:
                if len(modes) > 1 and mode == GPU:
                    self.host_mode = GPU
                return instance, mode, tops
            self.release(instance)
        raise self.no_code_for("Forward", modes[-1], site)

    def run_on_host(self, mode: int) -> None:
        """Which of the layer's functions CPU tensors get from now on: no short way that was made for the other."""
        self.host_mode = mode
        for instance in (*self.lent, *itertools.chain(*self.pools.values())):
            instance.shortcut = None

    def no_code_for(self, function: str, mode: int, site: Site) -> CaffeRuntimeError:
        hint = {
            (GPU, "cuda"): " Where it has no GPU code at all, use CPU tensors.",
            (CPU, "host"): " Its kernels may run on the host: m.mode = 'gpu' or None.",
        }.get((mode, site.backend), "")
        return self.no_code(f"{function}_{'gpu' if mode == GPU else 'cpu'}", self.library(site.backend), hint)

    def no_code(self, function: str, library, hint: str = "") -> CaffeRuntimeError:
        """With the place and the words of this thread's last NOT_IMPLEMENTED."""
        said = library._text(library.lib.caffe_last_error())
        return CaffeRuntimeError(
            f"{self.name}: {self.type}'s own {function} is NOT_IMPLEMENTED ({said}).{hint}"
        )

    def forward_again(self, site: Site, mode: int, bottoms, blobs, wanted, tops, states) -> Instance:
        """An instance in the state that forward left, for one more backward: made by running forward once more."""
        if self.in_place:
            raise CaffeRuntimeError(
                f"{self.name}: an in-place layer's backward can run once: its bottom, needed to run forward again, "
                "is gone. Give the top a name of its own."
            )
        if site.capture or any(state is None for state in states.values()):
            raise CaffeRuntimeError(f"{self.name}: a second backward cannot be part of a CUDA graph")
        with services.replaying(states):
            instance = self.acquire(site, mode)
            again = instance.forward(mode, bottoms, [blob.clone() for blob in blobs], wanted)
        if again is None:
            raise self.no_code_for("Forward", mode, site)
        if not all(map(self._same, again, tops)):
            raise CaffeRuntimeError(
                f"{self.name}: Backward needs Forward to be run again (a second backward, or kernels for lack of CPU "
                "code), and it gave another result: the layer depends on something that changes from call to call"
            )
        return instance

    @staticmethod
    def _same(one: Tensor, other: Tensor) -> bool:
        tolerance = TOLERANCES[one.dtype]
        return one.shape == other.shape and torch.allclose(one, other, tolerance, tolerance, equal_nan=True)

    def expect(self, bottoms: tuple[Shape, ...], tops: tuple[Shape, ...]) -> None:
        """Bottoms of these shapes will probably make such tops again."""
        if len(self.top_shapes) > 1000:  # where every batch has a shape of its own
            self.top_shapes.clear()
        self.top_shapes[bottoms] = tops

    # ---------------------------------------------------------------------------------------- words

    def check_bottoms(self, count: int) -> None:
        known = self.bottoms or self.set_up_shapes
        if count != len(known) and (self.bottoms or self.blob_shapes is not None):
            names = f": {', '.join(self.bottoms)}" if self.bottoms else ""
            raise CaffeValueError(f"{self.name}: {count} bottoms came, expected {len(known)}{names}")

    def bottom_name(self, i: int) -> str:
        return f"bottom '{self.bottoms[i]}'" if self.bottoms else f"bottom {i}"

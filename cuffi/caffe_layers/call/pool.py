"""The pool of one module's instances.

Backward reads what Forward left in its instance. So calls that overlap each get their own instance: several forwards
before a backward, or calls from several threads or streams.
"""

import contextlib
import threading
from collections import defaultdict
from collections.abc import Sequence

from torch import Tensor

from ...runtime import CaffeRuntimeError, CaffeTypeError, CaffeValueError
from . import services
from .instance import CPU, GPU, Definition, Instance, Shape, Site, shapes_of
from .state import same, warn_of_state


class Pool:
    """The definition and the instances that a module and its replicas share.

    A copied or unpickled pool has no instances. It makes them when they are needed.

    Args:
        definition: the definition of the instances.
        iteration: of the training loop; -1: unknown.

    Attributes:
        blob_shapes: the shapes of the parameter blobs; None before it is set up.
        blob_names: the names of the module's parameters, for C. None before it is set up, and if a top is computed
            in place: then Python makes the calls.
        top_shapes: the probable shapes of the tops, by the shapes of the bottoms and blobs.
        varying: (top, axis) of the sizes that depend on values: with bottoms of the same shapes, Forward gave other
            sizes than Reshape, or than another Forward.
        multipliers: lr_mult and decay_mult of each blob, as SetUp left them.
        weights: the tops' loss_weights; 1 if there is none.
        weighs: is one of them not 1?
        has_tops: does the layer have a top? If its number is not fixed, True until its first Forward.
    """

    def __init__(self, definition: Definition, iteration: int = -1):
        self.definition, self.name, self.in_place = definition, definition.name, definition.in_place
        self.iteration = iteration
        self.host_mode = None  # CPU or GPU, when it is known for which of them the layer has code
        self.free: dict[Site, list[Instance]] = defaultdict(list)
        self.top_shapes: dict[tuple[Shape, ...], tuple[Shape, ...]] = {}
        self.varying: set[tuple[int, int]] = set()
        # CUDA graphs use their memory, so they are never used again and never freed.
        self.captured: list[Instance] = []
        # Instances that wait for a backward. Without this reference the garbage collector could destroy an instance
        # together with its call, and the call would then release it.
        self.lent: set[Instance] = set()
        self.overlapped = False  # has a call begun before an earlier one's backward?
        self.blob_shapes: tuple[Shape, ...] | None = None
        self.blob_names: tuple[str, ...] | None = None
        self.set_up_shapes: tuple[Shape, ...] = ()
        self.multipliers: list[tuple[float, float]] = []
        self.weights: list[float] = []
        self.weighs = self.has_tops = False
        self.lock = threading.RLock()

    def __reduce__(self):
        return Pool, (self.definition, self.iteration)

    def __deepcopy__(self, memo):
        return Pool(self.definition, self.iteration)

    # ------------------------------------------------------------------------------------ instances

    def acquire(self, site: Site, mode: str) -> Instance:
        """An instance for one call: if possible the last one, because some layers count calls in their members."""
        try:
            return self.free[site].pop()
        except IndexError:
            pass
        if site.capture and (warm := self._warm(site)):
            return warm
        # Set up for the shapes of the first one; the layer's own Reshape checks the shapes of this call. The values of
        # its fillers are not used, so torch's generators must not advance.
        with services.replaying({}):
            return Instance(self.definition, site, mode, self.set_up_shapes, self.iteration)

    def _warm(self, site: Site) -> Instance | None:
        """For a CUDA graph: an instance from another stream.

        Its first call has already done the work on the host that a graph cannot capture.
        """
        for other, instances in list(self.free.items()):
            if other._replace(stream=site.stream, capture=True) == site:
                try:
                    instance = instances.pop()
                except IndexError:
                    continue
                instance.site = site
                return instance
        return None

    def lend(self, instance: Instance) -> None:
        """Keep the instance until its call's backward."""
        self.lent.add(instance)

    def release(self, instance: Instance) -> None:
        """Take back the instance of a finished call."""
        self.lent.discard(instance)
        (self.captured if instance.site.capture else self.free[instance.site]).append(instance)

    def set_up(
        self, site: Site, forced: str | None, bottoms: Sequence[Tensor | Shape], known: list[Tensor]
    ) -> list[Tensor]:
        """Make the first instance, for these bottoms or shapes. Returns its parameter blobs, on the CPU.

        Args:
            forced: the mode that the user asked for.
            known: blobs that exist already. If there are none, the layer's fillers draw from torch's generators.
        """
        shapes = tuple(tuple(b.shape) if isinstance(b, Tensor) else b for b in bottoms)
        mode = self.modes(site, forced)[0]
        with services.replaying({}) if known else contextlib.nullcontext():
            instance = Instance(self.definition, site, mode, bottoms, self.iteration)
        blobs = instance.initial_blobs()
        if known and len(known) != len(blobs):
            raise CaffeValueError(f"{self.name}: blobs: expected {len(blobs)}, got {len(known)}")
        self.multipliers = instance.multipliers
        self.weights = [weight or 1.0 for weight in instance.weights]
        self.weighs, self.has_tops = any(weight != 1 for weight in self.weights), bool(self.weights)
        self.set_up_shapes, self.blob_shapes = shapes, shapes_of(blobs)
        self._expect(shapes + self.blob_shapes, instance.top_shapes)
        self.blob_names = None if self.in_place else tuple(f"blob{i}" for i in range(len(blobs)))
        self.release(instance)
        return blobs

    # ---------------------------------------------------------------------------------------- calls

    def modes(self, site: Site, forced: str | None) -> tuple[str, ...]:
        """The modes to try, in order. On the host: the CPU code, then the kernels."""
        if not site.on_host:
            if forced == CPU:
                raise CaffeTypeError(
                    f"{self.name}: mode 'cpu' is for CPU tensors, not for {site.torch_device}"
                )
            return (GPU,)
        if forced is not None:
            return (forced,)
        return (CPU, GPU) if self.host_mode is None else (self.host_mode,)

    def forward(
        self, site: Site, forced: str | None, bottoms, blobs, wanted
    ) -> tuple[Instance, str, list[Tensor]]:
        """Run Forward. Returns the instance that ran it, its mode and its tops."""
        modes = self.modes(site, forced)
        shapes = shapes_of((*bottoms, *blobs))
        if self.lent and not self.overlapped and not site.capture:
            self.overlapped = True
            warn_of_state(self.definition, site, modes[0], bottoms, blobs, self.set_up_shapes, self.iteration)
        for mode in modes:
            instance = self.acquire(site, mode)
            expected = self.top_shapes.get(shapes)
            tops = instance.forward(mode, self.iteration, bottoms, blobs, wanted, expected)
            if tops is not None:
                if len(modes) > 1 and mode == GPU:
                    self.host_mode = GPU
                self.saw(shapes, tops)
                return instance, mode, tops
            self.release(instance)
        raise self.no_code_for("Forward", modes[-1], site)

    def reshape(self, site: Site, forced: str | None, shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
        """The tops' shapes for bottoms of these shapes, by Reshape."""
        mode = self.modes(site, forced)[0]
        instance = self.acquire(site, mode)
        try:
            return instance.reshape(mode, shapes)
        finally:
            self.release(instance)

    def run_on_host(self, mode: str) -> None:
        """Set the mode in which calls on CPU tensors run from now on."""
        self.host_mode = mode

    def no_code_for(self, function: str, mode: str, site: Site) -> CaffeRuntimeError:
        hint = {
            (GPU, False): " If it has no GPU code at all, use CPU tensors.",
            (CPU, True): " Its kernels may run on the host: m.mode = 'gpu' or None.",
        }.get((mode, site.on_host), "")
        return self.definition.no_code(f"{function}_{mode}", self.definition.library(site.backend), hint)

    def forward_again(self, site: Site, mode: str, bottoms, blobs, wanted, tops, states) -> Instance:
        """Run forward again, to get an instance in the state that forward left, for another backward."""
        if site.capture or any(state is None for state in states.values()):
            raise CaffeRuntimeError(f"{self.name}: a second backward cannot be part of a CUDA graph")
        with services.replaying(states):
            instance = self.acquire(site, mode)
            copies = [blob.clone() for blob in blobs]
            expected = self.top_shapes.get(shapes_of((*bottoms, *copies)))
            again = instance.forward(mode, self.iteration, bottoms, copies, wanted, expected)
        if again is None:
            raise self.no_code_for("Forward", mode, site)
        if not all(map(same, again, tops)):
            raise CaffeRuntimeError(
                f"{self.name}: Backward needs Forward to be run again (a second backward, a compiled graph, or kernels "
                "for lack of CPU code), and it gave another result: the layer depends on something that changes from "
                "call to call"
            )
        return instance

    def saw(self, inputs: tuple[Shape, ...], tops: Sequence[Tensor]) -> None:
        """Learn from the tops of a Forward."""
        if tops:
            self._expect(inputs, shapes_of(tops))
        else:
            self.has_tops = self.weighs = False

    def _expect(self, inputs: tuple[Shape, ...], tops: tuple[Shape, ...]) -> None:
        """Remember the tops' shapes for bottoms and blobs of these shapes, and which sizes vary."""
        for i, (before, now) in enumerate(zip(self.top_shapes.get(inputs, tops), tops, strict=True)):
            if before != now and len(before) == len(now):
                self.varying |= {(i, axis) for axis in range(len(now)) if before[axis] != now[axis]}
        if len(self.top_shapes) > 1000:  # every batch has another shape
            self.top_shapes.clear()
        self.top_shapes[inputs] = tops

    # ---------------------------------------------------------------------------------------- messages

    def check_bottoms(self, count: int) -> None:
        names = self.definition.bottoms
        known = names or self.set_up_shapes
        if count != len(known) and (names or self.blob_shapes is not None):
            listed = f": {', '.join(names)}" if names else ""
            raise CaffeValueError(f"{self.name}: expected {len(known)} bottoms{listed}, got {count}")

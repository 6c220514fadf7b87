"""A Caffe layer as a torch.nn.Module.

A layer's `__init__.py` says

    from .._caffe import caffe_layer

    Normalize = caffe_layer(__name__, "Normalize")

and its users

    m = Normalize(norm_param={"across_spatial": False})
    y = m(x)

What runs is the layer's own C++: SetUp at the first call, Reshape and Forward at every call, Backward under autograd.
"""

import contextlib
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils._python_dispatch import _disable_current_modes

from ._caffe_autograd import CaffeFunction, Call, weighted
from ._caffe_engine import DTYPES, MODES, Engine, Site, layer_of
from ._caffe_model_file import blobs_of
from ._caffe_param import Parameters
from ._caffe_record import MOST_AXES
from ._caffe_shortcut import shortcut
from ._runtime import (
    PLAIN,
    CaffeRuntimeError,
    CaffeTypeError,
    CaffeValueError,
    Layer,
    _raw_stream,
    describe,
    is_fake,
)

_DOCUMENTATION = """The Caffe layer {type} of {folder}, run as its authors wrote it.

    Args:
        prototxt: the layer's parameters as prototxt text, `layer {{ ... }}` or what stands in its braces, or as a dict.
        bottom, top: names of its inputs and outputs. Where the layer leaves the number of tops open, there are as many
            as names; a top with the name of a bottom is computed in place.
        parameters: fields of LayerParameter, messages as dicts.{fields}

    Calling it takes a tensor for each bottom and returns the top: a tensor, a tuple of several, () for none. Its
    parameter blobs are `blob0`, `blob1`, ...: made, and filled, by the first call or by `setup`.

    It computes in float32 or float64. A failed CHECK of the layer, about a bottom's shape for one, is a
    CaffeRuntimeError.
    """


def caffe_layer(module: str, type: str) -> type["CaffeModule"]:
    """The nn.Module class for a Caffe layer.

    Args:
        module: the layer package's `__name__`.
        type: Caffe's name of the layer, as REGISTER_LAYER_CLASS has it.
    """
    layer = layer_of(module)
    fields = Parameters(layer.folder).describe(type)
    text = _DOCUMENTATION.format(type=type, folder=f"layers/{layer.name}", fields=fields)
    return _class(type, layer, module, text)


def _class(name: str, layer: Layer, module: str, text: str) -> type:
    return type(CaffeModule)(
        name,
        (CaffeModule,),
        {"layer": layer, "type_name": name, "__doc__": text, "__module__": module, "__qualname__": name},
    )


class CaffeModule(nn.Module):
    """What all Caffe layers have in common."""

    layer: Layer
    type_name: str

    def __init__(self, prototxt: str | dict | None = None, *, bottom=(), top=(), **parameters):
        super().__init__()
        message = Parameters(self.layer.folder).layer_parameter(
            self.type_name, prototxt, bottom=bottom, top=top, **parameters
        )
        self.training = not getattr(message, "phase", 0)  # phase: TEST, as a testing Net's layers have it
        self.lr_mult = [spec.lr_mult for spec in message.param]
        self.propagate_down = list(getattr(message, "propagate_down", ()))  # protos before 2015-03 have none
        self._engine = Engine(
            self.layer.module,
            self.type_name,
            message.SerializeToString(),
            tuple(message.bottom),
            tuple(message.top),
        )
        self._text = str(message)
        self._mode: str | None = None
        self._shortcut: Callable | None = None

    def extra_repr(self) -> str:
        return " ".join(self._text.split())

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_shortcut": None}

    @property
    def mode(self) -> str | None:
        """Which of the layer's functions run on CPU tensors: 'cpu', its own CPU code; 'gpu', its kernels, on the host;
        None, CPU code where there is any, else kernels."""
        return self._mode

    @mode.setter
    def mode(self, mode: str | None) -> None:
        if mode is not None and mode not in MODES:
            raise CaffeValueError(f"{self.layer.name}: mode: expected 'cpu', 'gpu' or None, got {mode!r}")
        self._mode, self._shortcut = mode, None

    @property
    def iteration(self) -> int | None:
        """The training loop's iteration, for layers that ask their net for it (flownet2's schedules, names of files);
        None: it was not told, and a layer that asks raises an error."""
        return None if self._engine.iteration < 0 else self._engine.iteration

    @iteration.setter
    def iteration(self, iteration: int | None) -> None:
        if iteration is not None and iteration < 0:
            raise CaffeValueError(
                f"{self.layer.name}: iteration: expected 0 or more, or None, got {iteration}"
            )
        self._engine.iteration, self._shortcut = -1 if iteration is None else int(iteration), None

    # ---------------------------------------------------------------------------------------- calls

    def forward(self, *bottoms: Tensor):
        if torch.compiler.is_dynamo_compiling():
            return _outside_of_the_graph(self, *bottoms)
        if self.propagate_down:
            bottoms = self._detached(bottoms)
        if self._shortcut is not None:
            tops = self._shortcut(self, bottoms)
            if tops is not None:
                return tops
        return self._careful(bottoms)

    def _careful(self, bottoms: tuple[Tensor, ...]):
        engine = self._engine
        engine.check_bottoms(len(bottoms))
        bottoms = self._prepared(bottoms)
        device, dtype = self._device_and_dtype(bottoms)
        with _guarded(device):
            site = self._site(device, dtype)
            if engine.blob_shapes is None:
                self._set_up(site, [tuple(b.shape) for b in bottoms], [engine.address(b) for b in bottoms])
            blobs = self._blobs(site)
            wants = torch.is_grad_enabled() and any(t.requires_grad for t in (*bottoms, *blobs))
            forced = self._forced(site)
            if engine.weights and (wants or forward_ad._current_level >= 0):  # autograd refuses tangents
                call = Call(engine, site, forced, len(bottoms))
                tops = CaffeFunction.apply(call, *bottoms, *blobs)
                self._shortcut = shortcut(self, call.instance, forced, bottoms, tops)
            else:
                instance, _, tops = engine.forward(
                    site, forced, bottoms, blobs, [False] * len((*bottoms, *blobs))
                )
                tops = weighted(tops, engine.weights)
                for i in engine.in_place.values():
                    if not bottoms[i].is_inference():
                        torch.autograd.graph.increment_version(bottoms[i])
                self._shortcut = shortcut(self, instance, forced, bottoms, tops)
                engine.release(instance)
        return tops[0] if len(tops) == 1 else tuple(tops)

    def _detached(self, bottoms: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The bottoms, but for the gradients that the prototxt does not want."""
        if len(bottoms) != len(self.propagate_down):
            raise CaffeValueError(
                f"{self.layer.name}: propagate_down says {len(self.propagate_down)} bottoms, {len(bottoms)} came"
            )
        pairs = zip(bottoms, self.propagate_down, strict=True)
        return tuple(b if wanted or not isinstance(b, Tensor) else b.detach() for b, wanted in pairs)

    def _forced(self, site: Site) -> int | None:
        if self._mode == "cpu" and site.backend == "cuda":
            raise CaffeTypeError(
                f"{self.layer.name}: mode 'cpu' is for CPU tensors, not for {site.torch_device}"
            )
        return None if self._mode is None else MODES[self._mode]

    def _prepared(self, given: tuple[Tensor, ...]) -> list[Tensor]:
        """Dense contiguous tensors of one floating dtype on one device, or an error that names the bottom."""
        layer, engine = self.layer, self._engine
        if torch._C._are_functorch_transforms_active():
            raise CaffeRuntimeError(f"{layer.name}: torch.func's transforms cannot look into a Caffe layer")
        bottoms = []
        for i, bottom in enumerate(given):
            name = engine.bottom_name(i)
            if not isinstance(bottom, Tensor):
                raise layer.wrong(name, "a tensor", bottom)
            if is_fake(bottom) or bottom.device.type not in ("cpu", "cuda"):
                raise layer.wrong(name, "a tensor with data on cpu or cuda", bottom)
            if bottom.layout != torch.strided:
                raise layer.wrong(name, "a dense tensor", bottom)
            if type(bottom) not in PLAIN:
                if type(bottom).__torch_dispatch__ is not Tensor.__torch_dispatch__:
                    raise layer.wrong(name, f"a plain tensor instead of {type(bottom).__name__}", bottom)
                bottom = bottom.as_subclass(Tensor)
            if bottom.is_complex() or bottom.is_quantized:
                raise layer.wrong(name, "real numbers", bottom)
            if bottom.dim() > MOST_AXES:
                raise layer.wrong(name, f"at most {MOST_AXES} axes", bottom)
            if bottoms and bottom.device != bottoms[0].device:
                wanted = f"a tensor on {bottoms[0].device} as {engine.bottom_name(0)} is"
                raise layer.wrong(name, wanted, bottom)
            bottoms.append(bottom)
        dtype = self._dtype(bottoms)
        written = set(engine.in_place.values())
        for i, bottom in enumerate(bottoms):
            name, converted = engine.bottom_name(i), bottom
            if bottom.dtype != dtype:
                if bottom.is_floating_point() and not _autocast(bottom):
                    raise layer.wrong(name, _wanted_dtype(bottoms, dtype), bottom)
                converted = bottom.to(dtype)
            converted = converted.contiguous().resolve_neg()
            if i in written and bottom.is_leaf and bottom.requires_grad and torch.is_grad_enabled():
                raise CaffeRuntimeError(
                    f"{layer.name}: {name} is a leaf that requires grad: it cannot be computed in place"
                )
            if converted is not bottom and i in written:
                raise layer.wrong(name, f"a contiguous {dtype} tensor: it is computed in place", bottom)
            bottoms[i] = converted
        return bottoms

    def _dtype(self, bottoms: list[Tensor]) -> torch.dtype:
        """What the layer computes in: a floating bottom's dtype, else its blobs', else torch's default."""
        floating = [b for b in bottoms if b.is_floating_point()]
        if floating:
            lead = next((b for b in floating if b.dtype in DTYPES), floating[0])
            return lead.dtype if lead.dtype in DTYPES else torch.float32
        blob = next(self.parameters(), None)
        dtype = torch.get_default_dtype() if blob is None else blob.dtype
        return dtype if dtype in DTYPES else torch.float32

    def _device_and_dtype(self, bottoms: list[Tensor]) -> tuple[torch.device, torch.dtype]:
        if bottoms:
            return bottoms[0].device, bottoms[0].dtype
        blob = next(self.parameters(), None)
        return (torch.get_default_device() if blob is None else blob.device), self._dtype([])

    def _site(self, device: torch.device, dtype: torch.dtype) -> Site:
        phase = 0 if self.training else 1
        if device.type != "cuda":
            return Site("host", -1, 0, dtype, phase)
        index = torch.cuda.current_device() if device.index is None else device.index
        return Site("cuda", index, _raw_stream(index), dtype, phase, torch.cuda.is_current_stream_capturing())

    def _blobs(self, site: Site) -> list[Tensor]:
        """The parameter blobs, wherever the module keeps them: a replica of DataParallel has no nn.Parameters."""
        blobs = [getattr(self, f"blob{i}") for i in range(len(self._engine.blob_shapes))]
        for i, (blob, shape) in enumerate(zip(blobs, self._engine.blob_shapes, strict=True)):
            if blob.dtype != site.dtype or blob.device != site.torch_device:
                wanted = f"{site.dtype} on {site.torch_device} as the bottoms are (m.to(...) moves and converts it)"
                raise self.layer.wrong(f"blob{i}", wanted.removeprefix("torch."), blob)
            if tuple(blob.shape) != shape:
                raise CaffeValueError(
                    f"{self.layer.name}: blob{i}: expected {list(shape)}, got {describe(blob)}"
                )
        return [blob.contiguous().resolve_neg() for blob in blobs]

    # --------------------------------------------------------------------------------------- set up

    def setup(self, *bottoms, dtype: torch.dtype | None = None, device=None) -> "CaffeModule":
        """Make the parameter blobs without a call.

        Args:
            bottoms: a shape, or a tensor, for each bottom.
            dtype, device: of bottoms given as shapes; torch's defaults otherwise.
        """
        engine = self._engine
        engine.check_bottoms(len(bottoms))
        tensors = [b for b in bottoms if isinstance(b, Tensor)]
        given = next((t for t in tensors if t.dtype in DTYPES), None)
        device = torch.device(device or (tensors[0].device if tensors else torch.get_default_device()))
        dtype = dtype or (given.dtype if given is not None else self._dtype([]))
        if dtype not in DTYPES:
            raise CaffeTypeError(
                f"{self.layer.name}: dtype: Caffe layers compute in float32 or float64, not {dtype}"
            )
        shapes = [tuple(b.shape if isinstance(b, Tensor) else b) for b in bottoms]
        with _guarded(device):
            self._set_up(self._site(device, dtype), shapes, [0] * len(shapes))
        return self

    def _set_up(self, site: Site, shapes: list[tuple[int, ...]], addresses: list[int]) -> None:
        engine = self._engine
        if getattr(self, "_is_replica", False):
            raise CaffeRuntimeError(
                f"{self.layer.name}: call m.setup(...) before DataParallel copies the module"
            )
        with engine.lock:
            if engine.blob_shapes is not None:
                return
            mode = engine.modes(site, self._forced(site))[0]
            known = dict(self.named_parameters(recurse=False))
            instance = engine.set_up(site, mode, tuple(shapes), addresses, draw=not known)
            blobs = instance.initial_blobs()
            if known and len(known) != len(blobs):
                raise CaffeValueError(
                    f"{self.layer.name}: {len(known)} blobs were loaded, the layer has {len(blobs)}"
                )
            for i, blob in enumerate(blobs):
                if not known:
                    self._new_blob(i, blob.to(site.torch_device))
                elif known[f"blob{i}"].shape != blob.shape:
                    self._reshape_blob(i, known[f"blob{i}"], blob)
            engine.blob_shapes = tuple(tuple(blob.shape) for blob in blobs)
            engine.release(instance)

    def _new_blob(self, i: int, values: Tensor) -> None:
        trained = i >= len(self.lr_mult) or self.lr_mult[i] != 0
        self.register_parameter(f"blob{i}", nn.Parameter(values, requires_grad=trained))

    def _reshape_blob(self, i: int, loaded: nn.Parameter, blob: Tensor) -> None:
        """A blob from an old caffemodel has four axes, of which the first ones are 1 where the layer has fewer."""
        if [n for n in loaded.shape if n != 1] != [n for n in blob.shape if n != 1]:
            raise CaffeValueError(
                f"{self.layer.name}: blob{i}: the layer makes it {list(blob.shape)}, {list(loaded.shape)} was loaded"
            )
        loaded.data = loaded.data.reshape(blob.shape)

    def _load_from_state_dict(self, state_dict, prefix, *arguments) -> None:
        """Blobs that no call has made yet are made in the shapes of the state dict; set up verifies them."""
        i = 0
        while not hasattr(self, f"blob{i}") and (values := state_dict.get(f"{prefix}blob{i}")) is not None:
            self._new_blob(i, torch.empty_like(values, device=torch.get_default_device()))
            i += 1
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    def load_caffemodel(self, path, layer_name: str) -> "CaffeModule":
        """Take the parameter blobs of the layer of that name in a .caffemodel file."""
        blobs = blobs_of(Parameters(self.layer.folder), path, layer_name)
        known = dict(self.named_parameters(recurse=False))
        if known and len(known) != len(blobs):
            raise CaffeValueError(
                f"{self.layer.name}: {path} has {len(blobs)} blobs for {layer_name!r}, the layer has {len(known)}"
            )
        for i, values in enumerate(blobs):
            if not known:
                self._new_blob(i, values.to(torch.get_default_dtype()))
                continue
            blob = known[f"blob{i}"]
            if [n for n in values.shape if n != 1] != [n for n in blob.shape if n != 1]:
                raise CaffeValueError(
                    f"{self.layer.name}: blob{i}: expected {list(blob.shape)}, {path} has {list(values.shape)}"
                )
            with torch.no_grad():
                blob.copy_(values.reshape(blob.shape))
        return self


@torch.compiler.disable
def _outside_of_the_graph(module: CaffeModule, *bottoms: Tensor):
    return module(*bottoms)


@contextlib.contextmanager
def _guarded(device: torch.device):
    """The device is current, and no dispatch mode meets the tensors that are made for the layer."""
    with contextlib.ExitStack() as stack:
        if device.type == "cuda":
            stack.enter_context(torch.cuda.device(device))
        if torch._C._len_torch_dispatch_stack():
            stack.enter_context(_disable_current_modes())
        yield


def _autocast(bottom: Tensor) -> bool:
    return torch.is_autocast_enabled(bottom.device.type) and bottom.dtype in (torch.float16, torch.bfloat16)


def _wanted_dtype(bottoms: list[Tensor], dtype: torch.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    if any(b.dtype == dtype for b in bottoms):
        return f"{name} as the other bottoms are"
    return "float32 or float64, in which Caffe layers compute (or torch.autocast)"

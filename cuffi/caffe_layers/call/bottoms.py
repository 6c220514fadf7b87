"""Check and convert the bottoms and blobs of a call, and find its site."""

import contextlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from ...backends import DEVICES
from ...runtime import (
    PLAIN,
    CaffeRuntimeError,
    CaffeValueError,
    Layer,
    backend_of,
    describe,
    dtype_name,
    is_fake,
    raw_stream,
)
from .instance import DTYPES, MOST_AXES, Definition, Shape, Site, phase_of
from .pool import Pool


def refuse_transforms(layer: Layer) -> None:
    """Refuse torch.func's transforms, inside of which tensors have no memory."""
    if torch._C._are_functorch_transforms_active():
        raise CaffeRuntimeError(f"{layer.name}: torch.func's transforms cannot look into a Caffe layer")


def prepared(definition: Definition, inputs: tuple, blobs: Sequence[Tensor | None]) -> list[Tensor]:
    """Dense contiguous tensors of one floating dtype on one device, or an error that names the bottom.

    Args:
        inputs: the arguments of the module's call.
        blobs: the parameter blobs, if they exist already.
    """
    layer = definition.layer
    refuse_transforms(layer)
    bottoms: list[Tensor] = []
    for i, bottom in enumerate(inputs):
        bottoms.append(_checked(definition, i, bottom))
        if bottoms[i].device != bottoms[0].device:
            wanted = f"a tensor on {bottoms[0].device} as {definition.bottom_name(0)} is"
            raise layer.wrong(definition.bottom_name(i), wanted, bottom)
    dtype = dtype_of(bottoms, blobs)
    written = set(definition.in_place.values())
    for i, bottom in enumerate(bottoms):
        name, converted = definition.bottom_name(i), bottom
        if bottom.dtype != dtype:
            if bottom.is_floating_point() and not autocast(bottom):
                raise layer.wrong(name, _wanted_dtype(bottoms, dtype), bottom)
            converted = bottom.to(dtype)
        converted = converted.contiguous().resolve_neg()
        if i in written and definition.keeps_bottoms:
            bottoms[i] = converted.clone() if converted is bottom else converted
            continue
        if i in written and bottom.is_leaf and bottom.requires_grad and torch.is_grad_enabled():
            raise CaffeRuntimeError(
                f"{layer.name}: {name} is a leaf that requires grad: it cannot be computed in place"
            )
        if converted is not bottom and i in written:
            raise layer.wrong(name, f"a contiguous {dtype} tensor: it is computed in place", bottom)
        bottoms[i] = converted
    return bottoms


def _checked(definition: Definition, i: int, bottom) -> Tensor:
    layer, name = definition.layer, definition.bottom_name(i)
    if not isinstance(bottom, Tensor):
        raise layer.wrong(name, "a tensor", bottom)
    if is_fake(bottom) or bottom.device.type not in DEVICES:
        raise layer.wrong(name, f"a tensor with data on {' or '.join(DEVICES)}", bottom)
    if bottom.layout != torch.strided or bottom.is_nested:
        raise layer.wrong(name, "a dense tensor", bottom)
    if type(bottom) not in PLAIN:
        if type(bottom).__torch_dispatch__ is not Tensor.__torch_dispatch__:
            raise layer.wrong(name, f"a plain tensor instead of {type(bottom).__name__}", bottom)
        bottom = bottom.as_subclass(Tensor)
    if bottom.is_complex() or bottom.is_quantized:
        raise layer.wrong(name, "real numbers", bottom)
    if bottom.dim() > MOST_AXES:
        raise layer.wrong(name, f"at most {MOST_AXES} axes", bottom)
    return bottom


def dtype_of(bottoms: list[Tensor], blobs: Sequence[Tensor | None]) -> torch.dtype:
    """The dtype of the computation: that of a floating bottom, else that of the blobs, else torch's default."""
    floating = [b for b in bottoms if b.is_floating_point()]
    if floating:
        supported = [b.dtype for b in floating if b.dtype in DTYPES]
        return supported[0] if supported else torch.float32
    lead = blobs[0] if blobs else None
    dtype = torch.get_default_dtype() if lead is None else lead.dtype
    return dtype if dtype in DTYPES else torch.float32


def site_of(bottoms: list[Tensor], blobs: Sequence[Tensor | None], phase: int) -> Site:
    """The site of a call with these bottoms."""
    lead = (bottoms or blobs or [None])[0]
    device = torch.get_default_device() if lead is None else lead.device
    return site_at(device, bottoms[0].dtype if bottoms else dtype_of([], blobs), phase)


def site_at(device: torch.device, dtype: torch.dtype, phase: int) -> Site:
    backend = backend_of(device)
    if backend.on_host:
        return Site(backend.name, -1, 0, dtype, phase)
    index = torch.cuda.current_device() if device.index is None else device.index
    return Site(
        backend.name, index, raw_stream(index), dtype, phase, torch.cuda.is_current_stream_capturing()
    )


def checked_blobs(
    definition: Definition, blobs: Sequence[Tensor | None], shapes: tuple[Shape, ...], site: Site
) -> list[Tensor]:
    """The parameter blobs, checked and contiguous, in the dtype and on the device of the bottoms."""
    dense: list[Tensor] = []
    for i, (blob, shape) in enumerate(zip(blobs, shapes, strict=True)):
        if not isinstance(blob, Tensor) or blob.layout != torch.strided:
            raise definition.layer.wrong(f"blob{i}", "a dense parameter", blob)
        if blob.dtype != site.dtype or blob.device != site.torch_device:
            like = f"{dtype_name(site.dtype)} on {site.torch_device}"
            wanted = f"{like} as the bottoms are (m.to(...) moves and converts it)"
            raise definition.layer.wrong(f"blob{i}", wanted, blob)
        if tuple(blob.shape) != shape:
            raise CaffeValueError(f"{definition.name}: blob{i}: expected {list(shape)}, got {describe(blob)}")
        dense.append(blob.contiguous().resolve_neg())
    return dense


@contextlib.contextmanager
def guarded(device: torch.device):
    """Makes the device current, and hides the layer's tensors from dispatch modes."""
    on_host, modes = backend_of(device).on_host, torch._C._len_torch_dispatch_stack()
    with (
        contextlib.nullcontext() if on_host else torch.cuda.device(device),
        _disable_current_modes() if modes else contextlib.nullcontext(),
    ):
        yield


@contextlib.contextmanager
def placed(pool: Pool, inputs: tuple, blobs: Callable, training: bool, set_up: Callable):
    """(site, bottoms, blobs) of a call: converted and checked, with the device current.

    Args:
        inputs: the arguments of the module's call.
        blobs: returns the parameter blobs. Before set_up there may be none.
        set_up: takes the site and the bottoms, and sets up the pool if necessary.
    """
    before = blobs()
    bottoms = prepared(pool.definition, inputs, before)
    site = site_of(bottoms, before, phase_of(training))
    with guarded(site.torch_device):
        shapes = pool.blob_shapes
        if shapes is None:
            set_up(site, bottoms)
            before, shapes = blobs(), pool.blob_shapes
            assert shapes is not None  # set up
        yield site, bottoms, checked_blobs(pool.definition, before, shapes, site)


def autocast(bottom: Tensor) -> bool:
    return torch.is_autocast_enabled(bottom.device.type) and bottom.dtype in (torch.float16, torch.bfloat16)


def _wanted_dtype(bottoms: list[Tensor], dtype: torch.dtype) -> str:
    if any(b.dtype == dtype for b in bottoms):
        return f"{dtype_name(dtype)} as the other bottoms are"
    return "float32 or float64, in which Caffe layers compute (or torch.autocast)"

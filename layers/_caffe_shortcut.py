"""The short way of a call that is like the one before: same shapes, dtype, device, stream and phase.

Then the record is already filled in, but for addresses. Whatever differs goes the careful way, which knows what to say.
"""

import functools
from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import _caffe_services as services
from ._caffe_autograd import CaffeFunction, Call
from ._caffe_engine import Instance
from ._caffe_record import DATA
from ._runtime import PLAIN, _raw_stream


def shortcut(module, instance: Instance, forced: int | None, bottoms: list[Tensor], tops) -> Callable | None:
    """A function of a module and its bottoms, made from a call that has just gone the careful way.

    It returns what the module returns, or None: go the careful way. There is no such function where each call needs
    care: in place, weighted, tops that share memory, nothing to compute.
    """
    engine, site, record = instance.engine, instance.site, instance.record
    own = {b.data_ptr() for b in bottoms}.isdisjoint(t.data_ptr() for t in tops)
    some = bottoms and tops and all(t.numel() for t in (*bottoms, *tops))
    weighted = any(weight != 1 for weight in engine.weights)
    if engine.in_place or weighted or site.capture or not own or not some:
        return None
    scope = {
        "PLAIN": PLAIN,
        "Tensor": Tensor,
        "modes": torch._C._len_torch_dispatch_stack,
        "autocasting": torch._C._is_any_autocast_enabled,
        "forward_ad": forward_ad,
        "grad_enabled": torch.is_grad_enabled,
        "current_device": torch.cuda.current_device,
        "capturing": torch.cuda.is_current_stream_capturing,
        "raw_stream": _raw_stream,
        "get_num_threads": torch.get_num_threads,
        "set_num_threads": instance.lib.caffe_set_num_threads,
        "empty_like": torch.empty_like,
        "pool": engine.pools[site],
        "run": instance.lib.caffe_layer_forward_ffi,
        "thread": services.thread,
        "me": (me := object()),
        "site": site,
        "forced": forced,
        "training": module.training,
        "dtype": site.dtype,
        "device": site.device,
        "stream": site.stream,
        "Call": Call,
        # Function.apply's Python part looks for functorch transforms, which have no address: excluded already.
        "apply": super(torch.autograd.Function, CaffeFunction).apply,
    }
    shapes = [b.shape for b in bottoms] + [torch.Size(shape) for shape in engine.blob_shapes]
    scope |= {f"shape{i}": shape for i, shape in enumerate(shapes)}
    scope |= {f"top_shape{i}": top.shape for i, top in enumerate(tops)}
    like = [top.shape == bottoms[0].shape for top in tops]
    text = _text(len(bottoms), len(engine.blob_shapes), like, record, site.device, torch.cuda.device_count())
    exec(_compiled(text, f"<{engine.name}.{engine.type}>"), scope)
    instance.shortcut = me
    # Nothing here refers to itself: when the module goes, so do its instances and their memory, at once.
    return scope.pop("call")


@functools.lru_cache(256)
def _compiled(text: str, name: str):
    return compile(text, name, "exec")


def _text(bottoms: int, blobs: int, like: list[bool], record, device: int, devices: int) -> str:
    """Written out, as namedtuple does it: loops over inputs would cost more than the layer's launch."""
    names = [f"x{i}" for i in range(bottoms + blobs)]
    inputs = ", ".join(names)
    tops = [f"y{i}" for i in range(len(like))]
    get_blobs = "".join(f"\n        x{bottoms + i} = parameters['blob{i}']" for i in range(blobs))
    plain = " and ".join(
        f"type({x}) in PLAIN and {x}.dtype is dtype and {x}.shape == shape{i} and {x}.get_device() == device "
        f"and {x}.is_contiguous() and not {x}.is_neg()"
        for i, x in enumerate(names)
    )
    if device >= 0:
        guard = "raw_stream(device) != stream or capturing()"
        guard += " or current_device() != device" if devices > 1 else ""
        threads = ""
    else:
        guard, threads = "False", "set_num_threads(get_num_threads())"
    lines = []
    for x, at in zip(names, record.bottoms + record.blobs, strict=True):
        lines.append(f"words[{at + DATA}] = {x}_at")
    for i, (y, at) in enumerate(zip(tops, record.tops, strict=True)):
        lines.append(f"{y} = empty_like(x0)" if like[i] else f"{y} = x0.new_empty(top_shape{i})")
        lines.append(f"words[{at + DATA}] = {y}_at = {y}.data_ptr()")
    fill = "\n    ".join(lines)
    elsewhere = " or ".join(f"words[{at + DATA}] != {y}_at" for y, at in zip(tops, record.tops, strict=True))
    gathered = "\n        ".join(
        f"{y} = instance.result({at}, {DATA}, {y}, [{inputs}])"
        for y, at in zip(tops, record.tops, strict=True)
    )
    return f"""
def call(module, bottoms):
    if (
        len(bottoms) != {bottoms} or module.training is not training
        or modes() or autocasting() or forward_ad._current_level >= 0
    ):
        return None
    {", ".join(names[:bottoms])}, = bottoms
    try:
        parameters = module._parameters{get_blobs}
        if not ({plain}):
            return None
        {"; ".join(f"{x}_at = {x}.data_ptr()" for x in names)}
    except (RuntimeError, KeyError):  # no dense tensor, one of torch.func's; a replica, which has no nn.Parameters
        return None
    if not ({" and ".join(f"{x}_at" for x in names)}) or {guard}:
        return None
    if ({" or ".join(f"{x}.requires_grad" for x in names)}) and grad_enabled():
        {", ".join(tops)}, = apply(Call(module._engine, site, forced, {bottoms}), {inputs})
        return {", ".join(tops)}
    try:
        instance = pool.pop()
    except IndexError:
        return None
    if instance.shortcut is not me:  # its record is another call's
        pool.append(instance)
        return None
    {threads}
    words = instance.record.words
    {fill}
    if run(instance.handle, instance.record.address) or thread.failure:
        module._engine.fail(instance.library, "forward")
    if {elsewhere}:  # a top whose shape depends on values
        {gathered}
        instance.shortcut = None
    pool.append(instance)
    return {", ".join(tops)}
"""

"""The short way of a call that is like the one before: same shapes, dtype, device, stream and phase.

Then the records are filled in already, but for addresses. Whatever differs goes the careful way, which knows what to
say.
"""

import functools
from textwrap import indent
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import _caffe_services as services
from ._caffe_autograd import CaffeFunction, Call
from ._caffe_engine import NOT_IMPLEMENTED, Instance
from ._caffe_record import DATA, DIFF, DIFF_UNDEFINED, FLAGS, MODE, WANTED, Record
from ._runtime import PLAIN, _raw_stream


def shortcut(module, instance: Instance, forced: int | None, bottoms: list[Tensor], tops):
    """A function of a module and its bottoms, made from a call that has just gone the careful way.

    It returns what the module returns, or None: go the careful way. There is no such function where each call needs
    care: in place, tops that share memory, nothing to compute.
    """
    engine, site, record = instance.engine, instance.site, instance.record
    own = {b.data_ptr() for b in bottoms}.isdisjoint(t.data_ptr() for t in tops)
    some = bottoms and tops and all(t.numel() for t in (*bottoms, *tops))
    if engine.in_place or site.capture or not own or not some:
        return None
    bottom_shapes, top_shapes = [b.shape for b in bottoms], [top.shape for top in tops]
    shapes = bottom_shapes + [torch.Size(shape) for shape in engine.blob_shapes]
    scope = {
        "PLAIN": PLAIN,
        "NOT_IMPLEMENTED": NOT_IMPLEMENTED,
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
        "zeros_like": torch.zeros_like,
        "pool": engine.pools[site],
        "lent": engine.lent,
        "run": instance.lib.caffe_layer_forward_ffi,
        "run_back": instance.lib.caffe_layer_backward_ffi,
        "thread": services.thread,
        "me": (me := object()),
        "mode": record.words[MODE],
        "site": site,
        "forced": forced,
        "training": module.training,
        "dtype": site.dtype,
        "device": site.device,
        "stream": site.stream,
        "Call": Call,
        "shapes": shapes[: len(bottoms)] + top_shapes + shapes[len(bottoms) :],
        # Function.apply's Python part looks for functorch transforms, which have no address: excluded already.
        "apply": super(torch.autograd.Function, CaffeFunction).apply,
    }
    scope |= {f"shape{i}": shape for i, shape in enumerate(shapes)}
    scope |= {f"top_shape{i}": shape for i, shape in enumerate(top_shapes)}
    scope |= {f"weight{i}": weight for i, weight in enumerate(engine.weights)}
    like = tuple(shape == bottom_shapes[0] for shape in top_shapes)
    weighs, devices = tuple(weight != 1 for weight in engine.weights), torch.cuda.device_count()
    texts = Texts(len(bottoms), len(engine.blob_shapes), like, weighs, site.device, devices)
    name = f"<{engine.name}.{engine.type}>"
    # Nothing here refers to itself: when the module goes, so do its instances and their memory, at once.
    halves = dict(scope)
    exec(_compiled(texts, "halves", name), halves)
    scope |= {half: halves.pop(half) for half in ("ahead", "back")}
    exec(_compiled(texts, "call", name), scope)
    instance.shortcut = me
    return scope.pop("call")


class Texts(NamedTuple):
    """The functions, written out, as namedtuple does it: loops over inputs would cost more than the layer's launch.

    `call` is the module's forward; `ahead` and `back` are the two halves of its autograd node. In them x0, x1, ... are
    bottoms, then blobs; y0, ... tops; dx0, ..., dy0, ... their diffs.
    """

    bottoms: int
    blobs: int
    like: tuple[bool, ...]  # for each top, whether it has the first bottom's shape
    weighs: tuple[bool, ...]  # for each top, whether it has a loss_weight other than 1
    device: int
    devices: int

    @property
    def inputs(self) -> list[str]:
        return [f"x{i}" for i in range(self.bottoms + self.blobs)]

    @property
    def tops(self) -> list[str]:
        return [f"y{i}" for i in range(len(self.like))]

    def weighted(self, names: list[str]) -> str:
        return ", ".join(
            f"{name} * weight{i}" if weighs else name
            for i, (name, weighs) in enumerate(zip(names, self.weighs, strict=True))
        )

    @property
    def record(self) -> dict[str, int]:
        """Where each one's blob record begins."""
        record = Record(self.bottoms, len(self.like), self.blobs)
        return dict(zip(self.inputs + self.tops, record.bottoms + record.blobs + record.tops, strict=True))

    @property
    def elsewhere(self) -> str:
        if self.device < 0:
            return "False"
        return "raw_stream(device) != stream" + (" or current_device() != device" if self.devices > 1 else "")

    @property
    def threads(self) -> str:
        return "set_num_threads(get_num_threads())" if self.device < 0 else "pass"

    def forward(self, flags: list[str], moved_too: str = "pass") -> str:
        """Take an instance, make the tops, run Forward. moved_too: for a top whose shape depends on values."""
        record, fill = self.record, []
        for x, flag in zip(self.inputs, flags, strict=True):
            fill.append(f"words[{record[x] + DATA}] = {x}_at; words[{record[x] + FLAGS}] = {flag}")
        for i, y in enumerate(self.tops):
            fill.append(f"{y} = empty_like(x0)" if self.like[i] else f"{y} = x0.new_empty(top_shape{i})")
            fill.append(f"words[{record[y] + DATA}] = {y}_at = {y}.data_ptr()")
        moved = " or ".join(f"words[{record[y] + DATA}] != {y}_at" for y in self.tops)
        results = [
            f"{y} = instance.result(instance.record, {record[y]}, {DATA}, {y}, [{', '.join(self.inputs)}])"
            for y in self.tops
        ]
        return f"""
try:
    instance = pool.pop()
except IndexError:
    return None
if instance.shortcut is not me:  # its record is another call's
    pool.append(instance)
    return None
{self.threads}
words = instance.record.words
{chr(10).join(fill)}
status = run(instance.handle, instance.record.address)
if status == NOT_IMPLEMENTED and not thread.failure:
    pool.append(instance)
    return None
if status or thread.failure:
    instance.engine.fail(instance.library, "forward")
if {moved}:
    {"; ".join(results)}
    instance.shortcut = None
    {moved_too}
"""

    def call(self) -> str:
        names, tops = ", ".join(self.inputs), ", ".join(self.tops)
        plain = " and ".join(
            f"type({x}) in PLAIN and {x}.dtype is dtype and {x}.shape == shape{i} and {x}.get_device() == device "
            f"and {x}.is_contiguous() and not {x}.is_neg()"
            for i, x in enumerate(self.inputs)
        )
        capturing = "capturing()" if self.device >= 0 else "False"
        blobs = [f"{x} = parameters['blob{i}']" for i, x in enumerate(self.inputs[self.bottoms :])]
        return f"""
def call(module, bottoms):
    if (
        len(bottoms) != {self.bottoms} or module.training is not training
        or modes() or autocasting() or forward_ad._current_level >= 0
    ):
        return None
    {", ".join(self.inputs[: self.bottoms])}, = bottoms
    try:
        parameters = module._parameters
        {"; ".join(blobs)}
        if not ({plain}):
            return None
        {"; ".join(f"{x}_at = {x}.data_ptr()" for x in self.inputs)}
    except (RuntimeError, KeyError):  # no dense tensor, one of torch.func's; a replica, which has no nn.Parameters
        return None
    if not ({" and ".join(f"{x}_at" for x in self.inputs)}) or {self.elsewhere} or {capturing}:
        return None
    if ({" or ".join(f"{x}.requires_grad" for x in self.inputs)}) and grad_enabled():
        {tops}, = apply(Call(module._engine, site, forced, {self.bottoms}, ahead, back), {names})
        return {tops}
{indent(self.forward(["0"] * len(self.inputs)), "    ")}
    pool.append(instance)
    return {self.weighted(self.tops)}
"""

    def halves(self) -> str:
        return self.ahead() + self.back()

    def ahead(self) -> str:
        """Forward of a call that may be differentiated: its tops, and these weighted. None: not this way."""
        flags = [f"{WANTED} if wanted[{i}] else 0" for i in range(len(self.inputs))]
        return f"""
def ahead(call, inputs, wanted):
    {", ".join(self.inputs)}, = inputs
    {"; ".join(f"{x}_at = {x}.data_ptr()" for x in self.inputs)}
    outer, thread.drawn = thread.drawn, call.states
    try:
{indent(self.forward(flags, "call.back = None"), "        ")}
    finally:
        thread.drawn = outer
    call.instance, call.mode = instance, mode
    lent.add(instance)
    return ({", ".join(self.tops)},), ({self.weighted(self.tops)},)
"""

    def back(self) -> str:
        """The first Backward after it; None: not this way."""
        record, fill, diffs = self.record, [], [f"d{y}" for y in self.tops]
        for i, x in enumerate(self.inputs):
            new, flags = (
                ("empty_like", WANTED | DIFF_UNDEFINED) if i < self.bottoms else ("zeros_like", WANTED)
            )
            fill += [
                f"words[{record[x] + DATA}] = {x}.data_ptr()",
                f"d{x} = {new}({x}) if wanted[{i}] else None",
                f"words[{record[x] + DIFF}] = d{x}.data_ptr() if wanted[{i}] else 0",
                f"words[{record[x] + FLAGS}] = {flags} if wanted[{i}] else 0",
            ]
        for y in self.tops:
            fill.append(f"if not d{y}.is_contiguous(): d{y} = d{y}.contiguous()")
            fill.append(
                f"words[{record[y] + DATA}] = {y}.data_ptr(); words[{record[y] + DIFF}] = d{y}.data_ptr()"
            )
        plain = " and ".join(
            f"type(d{y}) in PLAIN and d{y}.dtype is dtype and d{y}.get_device() == device and not d{y}.is_neg()"
            for y in self.tops
        )
        return f"""
def back(call, saved, diffs, wanted):
    instance = call.instance
    if instance is None or {self.elsewhere}:
        return None
    {", ".join(self.inputs + self.tops)}, = saved
    {", ".join(diffs)}, = diffs
    if not ({plain}):
        return None
    {", ".join(diffs)}, = {self.weighted(diffs)},
    if instance.backward_for is not me:
        instance.prepare_backward(shapes)
        instance.backward_for = me
    words = instance.backward_record.words
{indent(chr(10).join(fill), "    ")}
    {self.threads}
    if run_back(instance.handle, instance.backward_record.address) or thread.failure:
        thread.failure = None
        return None  # it fails again on the careful way, which can say why
    call.instance = None
    lent.discard(instance)
    pool.append(instance)
    return {", ".join(f"d{x}" for x in self.inputs)},
"""


@functools.lru_cache(256)
def _compiled(texts: Texts, part: str, name: str):
    return compile(getattr(texts, part)(), name, "exec")

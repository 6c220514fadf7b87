"""The short way of a call that is like the one before: same shapes, dtype, device, stream and phase, and no gradient.

Then the record is already filled in, but for addresses. Whatever differs goes the careful way, which knows what to say.
"""

from array import array

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import _caffe_services as services
from ._caffe_engine import Instance
from ._caffe_record import AXES, DATA, DATA_TOKEN, DATA_UNDEFINED, FLAGS, SHAPE
from ._runtime import PLAIN, _raw_stream

_modes = torch._C._len_torch_dispatch_stack
_autocasting = torch._C._is_any_autocast_enabled
_capturing = torch.cuda.is_current_stream_capturing
_grad_enabled = torch.is_grad_enabled


class Shortcut:
    """Made by `of` from a call that went the careful way, called with the bottoms of later ones."""

    @classmethod
    def of(cls, module, instance: Instance, bottoms: list[Tensor], tops: list[Tensor]) -> "Shortcut | None":
        """None where each call needs care: in place, weighted, tops that share memory, nothing to compute."""
        engine = module._engine
        own = {b.data_ptr() for b in bottoms}.isdisjoint(t.data_ptr() for t in tops)
        some = bottoms and all(t.numel() for t in (*bottoms, *tops))
        weighted = any(weight != 1 for weight in engine.weights)
        if engine.in_place or weighted or instance.site.capture or not own or not some:
            return None
        return cls(engine, instance, module.training, bottoms, tops)

    def __init__(self, engine, instance: Instance, training: bool, bottoms, tops):
        site, record = instance.site, instance.record
        self.engine, self.training, self.dtype, self.device = engine, training, site.dtype, site.device
        self.stream, self.pool = site.stream, engine.pools[site]
        self.run, self.set_num_threads = (
            instance.lib.caffe_layer_forward_ffi,
            instance.lib.caffe_set_num_threads,
        )
        self.one_device = torch.cuda.device_count() <= 1
        self.count = len(bottoms)
        self.blobs = [f"blob{i}" for i in range(len(record.blobs))]
        shapes = [b.shape for b in bottoms] + [torch.Size(shape) for shape in engine.blob_shapes]
        at = [at + DATA for at in record.bottoms + record.blobs]
        self.inputs = list(zip(shapes, at, strict=True))
        # A top in the first bottom's shape is made like that, which is the cheapest way to make one.
        self.tops = [
            (
                None if top.shape == shapes[0] else top.shape,
                at,
                slice(at + AXES, at + SHAPE + top.dim()),
                _axes(top),
            )
            for top, at in zip(tops, record.tops, strict=True)
        ]
        instance.shortcut = self

    def __call__(self, module, bottoms: tuple[Tensor, ...]):
        """The tops, or None: go the careful way."""
        device, dtype = self.device, self.dtype
        if (
            len(bottoms) != self.count
            or module.training is not self.training
            or _modes()
            or _autocasting()
            or forward_ad._current_level >= 0
        ):
            return None
        inputs = bottoms
        if self.blobs:
            try:  # a replica has no nn.Parameters
                inputs += tuple([module._parameters[name] for name in self.blobs])
            except KeyError:
                return None
        grad = _grad_enabled()
        try:
            for x, (shape, _) in zip(inputs, self.inputs, strict=True):
                if not (
                    type(x) in PLAIN
                    and x.dtype is dtype
                    and x.shape == shape
                    and x.get_device() == device
                    and x.is_contiguous()
                    and not (x.is_neg() or (grad and x.requires_grad))
                ):
                    return None
            addresses = [x.data_ptr() for x in inputs]
        except RuntimeError:  # no dense tensor, or one of torch.func's
            return None
        if not all(addresses):
            return None
        if device >= 0:
            if not self.one_device and torch.cuda.current_device() != device:
                return None
            if _raw_stream(device) != self.stream or _capturing():
                return None
        else:
            self.set_num_threads(torch.get_num_threads())
        try:
            instance = self.pool.pop()
        except IndexError:
            return None
        if instance.shortcut is not self:  # its record is another call's
            self.pool.append(instance)
            return None
        words = instance.record.words
        for (_, at), address in zip(self.inputs, addresses, strict=True):
            words[at] = address
        first, tops = bottoms[0], []
        for shape, at, _, _ in self.tops:
            top = torch.empty_like(first) if shape is None else first.new_empty(shape)
            words[at + DATA], words[at + DATA_TOKEN], words[at + FLAGS] = top.data_ptr(), -1, DATA_UNDEFINED
            tops.append(top)
        if self.run(instance.handle, instance.record.address) or services.thread.failure:
            self.engine.fail(instance.library, "forward")
        for i, (_, at, axes, expected) in enumerate(self.tops):
            if (
                words[axes] != expected or words[at + DATA] != tops[i].data_ptr()
            ):  # its shape depends on values
                tops[i] = instance.result(at, DATA, tops[i], bottoms)
                instance.shortcut = None
        self.pool.append(instance)
        return tops[0] if len(tops) == 1 else tuple(tops)


def _axes(tensor: Tensor) -> array:
    """The words of a blob record from AXES to the end of the shape."""
    return array("q", [tensor.dim(), *[0] * (SHAPE - AXES - 1), *tensor.shape])

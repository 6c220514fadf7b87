"""A Caffe layer as an operator of torch.library, for the graphs of torch.compile and torch.export.

A graph holds tensors, numbers and strings, but no C++ object. So the operator takes the layer's parameters as prototxt
text, and gets shapes from the layer's own Reshape. Its backward runs Forward again before Backward. This cannot work
for a layer whose results change from call to call, which raises an error. Sizes that depend on values, such as a
detector's number of boxes, are `varying`: torch learns them when the graph runs.
"""

import contextlib
import functools

import torch

from ...backends import DISPATCH_KEYS
from ...caffe_files.parameters import Parameters
from ...runtime import CaffeRuntimeError, name_and_library, once
from . import services
from .bottoms import dtype_of, guarded, placed, site_at
from .instance import GPU, Definition, caffe_package, phase_of
from .pool import Pool


class GraphOperator:
    """torch.ops.<package>.<type>, and <type>_backward.

    Args:
        module: the layer package's `__name__`.
        type: Caffe's name of the layer.
    """

    def __init__(self, module: str, type: str):
        self.layer, self.type = caffe_package(module), type
        self.pools: dict[str, Pool] = {}
        name, library = name_and_library(module, type)
        how = "str parameter, bool training, str? mode, str varying"
        # A layer may keep memory from its first call and read the host's, so torch's CUDA graphs leave it outside.
        outside = getattr(torch.Tag, "cudagraph_unsafe", None)  # since torch 2.9
        tags = (torch.Tag.pt2_compliant_tag, *((outside,) if outside else ()))
        library.define(f"{type}(Tensor[] bottoms, Tensor[] blobs, {how}) -> Tensor[]", tags=tags)
        library.define(
            f"{type}_backward(Tensor[] bottoms, Tensor[] blobs, Tensor[] tops, Tensor[] top_diffs, bool[] wanted, "
            f"{how}) -> Tensor[]",
            tags=tags,
        )
        for function, implementation, fake in (
            (type, self._forward, self._fake),
            (f"{type}_backward", self._backward, self._fake_backward),
        ):
            for key in DISPATCH_KEYS:
                library.impl(function, implementation, key)
            torch.library.register_fake(f"{library.ns}::{function}", fake, lib=library)
        torch.library.register_autograd(
            name, once(self._differentiated, f"{module}.{type}"), setup_context=_keep, lib=library
        )
        operators = getattr(torch.ops, library.ns)
        self.operator = getattr(operators, type).default
        self.backward_operator = getattr(operators, f"{type}_backward").default

    def __call__(self, text: str, training: bool, mode: str | None, varying, bottoms, blobs):
        """The tops. The conversions to one dtype happen here, so that they become part of the graph.

        Args:
            varying: (top, axis) of the sizes that depend on values.
        """
        dtype = dtype_of(bottoms, blobs)
        # As a string, because AOTInductor passes an empty list of numbers as None.
        places = " ".join(f"{top}.{axis}" for top, axis in sorted(varying))
        return self.operator([b.to(dtype) for b in bottoms], list(blobs), text, training, mode, places)

    def __deepcopy__(self, memo):
        return self

    def _pool(self, text: str) -> Pool:
        """The pool for these parameters. Operators of several modules may share it."""
        if text not in self.pools:
            message = Parameters(self.layer.folder).layer_parameter(self.type, text)
            names = tuple(message.bottom), tuple(message.top)
            definition = Definition(self.layer.module, self.type, message.SerializeToString(), *names)
            self.pools[text] = Pool(definition)
        return self.pools[text]

    # -------------------------------------------------------------------------------------- shapes

    def _fake(self, bottoms, blobs, parameter, training, mode, varying):
        pool, lead = self._pool(parameter), (bottoms or blobs)[0]
        # int(): symbolic sizes become fixed in the graph, because the layer's own code needs numbers.
        shapes = tuple(tuple(int(size) for size in b.shape) for b in bottoms)
        backend = self.layer.any_backend()
        device = torch.device(backend.device) if backend.on_host else lead.device
        with guarded(device), torch.inference_mode(False):
            site = site_at(device, lead.dtype, phase_of(training))
            if pool.blob_shapes is None:
                self._set_up(pool, mode, site, shapes)
            tops = pool.reshape(site, mode if backend.on_host else None, shapes)
        tops = [list(shape) for shape in tops]
        for i, axis in _places(varying):
            tops[i][axis] = torch.library.get_ctx().new_dynamic_size()
        return [lead.new_empty(shape) for shape in tops]

    @staticmethod
    def _fake_backward(bottoms, blobs, tops, top_diffs, wanted, parameter, training, mode, varying):
        inputs = (*bottoms, *blobs)
        return [
            torch.empty_like(x) if want else x.new_empty(0) for x, want in zip(inputs, wanted, strict=True)
        ]

    @staticmethod
    def _set_up(pool: Pool, mode: str | None, site, bottoms) -> None:
        """Set up the pool. Each call passes its own blobs, so those made here are dropped."""
        with pool.lock:
            if pool.blob_shapes is None:
                with services.replaying({}):
                    pool.set_up(site, mode, bottoms, [])

    # --------------------------------------------------------------------------------------- calls

    @contextlib.contextmanager
    def _call(self, bottoms, blobs, parameter, training, mode):
        """(pool, site, mode, bottoms, blobs) of a call. Bottoms that are computed in place are copied."""
        pool = self._pool(parameter)
        bottoms = tuple(b.detach() for b in bottoms)
        set_up = functools.partial(self._set_up, pool, mode)
        with placed(pool, bottoms, lambda: blobs, training, set_up) as (site, bottoms, blobs):
            for i in pool.in_place.values():
                bottoms[i] = bottoms[i].clone()
            yield pool, site, mode, bottoms, [b.detach() for b in blobs]

    def _forward(self, bottoms, blobs, parameter, training, mode, varying):
        with self._call(bottoms, blobs, parameter, training, mode) as (pool, site, forced, bottoms, blobs):
            copies = [blob.clone() for blob in blobs]
            wanted = [True] * len((*bottoms, *blobs))
            instance, chosen, tops = pool.forward(site, forced, bottoms, copies, wanted)
            written = instance.written
            shapes = instance.reshape(chosen, tuple(tuple(b.shape) for b in bottoms))
            pool.release(instance)
        if written:
            raise CaffeRuntimeError(
                f"{self.layer.name}: {self.type} cannot be part of a graph: its Forward writes to blob{written[0]}, "
                "and a graph cannot hold a value that changes from call to call. "
                "torch.compiler.disable(m) leaves it outside"
            )
        known = _places(varying)
        if _without(known, shapes) != _without(known, [tuple(top.shape) for top in tops]):
            raise CaffeRuntimeError(
                f"{self.layer.name}: {self.type} cannot be part of this graph: its tops' shapes depend on values, "
                "which no call had shown when the graph was made. Call the module on such values before, or leave it "
                "outside by torch.compiler.disable(m)"
            )
        inputs = {t.untyped_storage().data_ptr() for t in (*bottoms, *copies)}
        in_place = pool.in_place
        return [
            top if i in in_place or top.untyped_storage().data_ptr() not in inputs else top.clone()
            for i, top in enumerate(tops)
        ]

    def _backward(self, bottoms, blobs, tops, top_diffs, wanted, parameter, training, mode, varying):
        with self._call(bottoms, blobs, parameter, training, mode) as (pool, site, forced, bottoms, blobs):
            diffs = [d.contiguous().resolve_neg().clone() for d in top_diffs]
            for chosen in pool.modes(site, forced):
                instance = pool.forward_again(site, chosen, bottoms, blobs, wanted, tops, {})
                found = instance.backward(chosen, -1, bottoms, tops, blobs, diffs, wanted)
                pool.release(instance)
                if found is not None:
                    break
                if forced is None and site.on_host:
                    pool.run_on_host(GPU)
            else:
                raise pool.no_code_for("Backward", chosen, site)
        inputs = (*bottoms, *blobs)
        return [x.new_empty(0) if d is None else d for x, d in zip(inputs, found, strict=True)]

    def _differentiated(self, ctx, top_diffs):
        count = ctx.bottoms, ctx.blobs
        saved = ctx.saved_tensors
        bottoms, blobs, tops = saved[: count[0]], saved[count[0] : sum(count)], saved[sum(count) :]
        diffs = [torch.zeros_like(t) if d is None else d for t, d in zip(tops, top_diffs, strict=True)]
        found = self.backward_operator(
            list(bottoms), list(blobs), list(tops), diffs, list(ctx.wants_gradient), *ctx.how
        )
        found = [d if want else None for d, want in zip(found, ctx.wants_gradient, strict=True)]
        return found[: count[0]], found[count[0] :], None, None, None, None


def _places(varying: str) -> list[tuple[int, int]]:
    """The (top, axis) pairs of the operator's string."""
    pairs = (place.split(".") for place in varying.split())
    return [(int(top), int(axis)) for top, axis in pairs]


def _without(places: list[tuple[int, int]], shapes) -> list[list[int | None]]:
    """The shapes, with None at these (top, axis)."""
    return [[None if (i, axis) in places else n for axis, n in enumerate(s)] for i, s in enumerate(shapes)]


def _keep(ctx, inputs, output) -> None:
    bottoms, blobs, *ctx.how = inputs
    ctx.bottoms, ctx.blobs = len(bottoms), len(blobs)
    ctx.wants_gradient = [t.requires_grad for t in (*bottoms, *blobs)]
    ctx.save_for_backward(*bottoms, *blobs, *output)

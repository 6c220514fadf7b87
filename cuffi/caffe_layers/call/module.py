"""A Caffe layer as a torch.nn.Module.

A layer's `__init__.py` has

    from cuffi import caffe_layer

    Normalize = caffe_layer(__name__, "Normalize")

and users write

    m = Normalize(norm_param={"across_spatial": False})
    y = m(x)

The layer's own C++ runs: SetUp at the first call, Reshape and Forward at every call, Backward under autograd.
"""

import inspect
import operator
import re
import sys
import textwrap
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling

from ...caffe_files.caffemodel import blobs_of, fits
from ...caffe_files.parameters import Parameters
from ...runtime import (
    CaffeRuntimeError,
    CaffeTypeError,
    CaffeValueError,
    Layer,
    describe,
    explain_onnx,
    fx_node,
    is_fake,
    path_of,
    refuse_script,
)
from . import autograd, services
from .autograd import CaffeCall, apply
from .bottoms import dtype_of, guarded, placed, refuse_transforms, site_at
from .graph_operator import GraphOperator
from .instance import DTYPES, MODES, Definition, Shape, Site, caffe_package, phase_of
from .pool import Pool

_DOCUMENTATION = """The Caffe layer {type} of {folder}, run as its authors wrote it.
{about}
    Args:
        prototxt: the layer's parameters as a dict, or as prototxt text: `layer {{ ... }}`, or only what its braces
            hold.
        bottom, top: names of its inputs and outputs. If the layer does not fix the number of tops, there is one
            for each name. A top with the name of a bottom is computed in place.
        parameters: fields of LayerParameter, messages as dicts.{fields}

    Call it with a tensor for each bottom. It returns one top as a tensor, several as a tuple, none as (). The first
    call, or `setup`, makes and fills its parameter blobs, `blob0`, `blob1`, ...

    It computes in float32 or float64. A failed CHECK of the layer, for example on a bottom's shape, is a
    CaffeRuntimeError.
    """


def caffe_layer(module: str, type: str) -> type["CaffeModule"]:
    """Make the nn.Module class of a Caffe layer: a layer's `__init__.py` calls this.

    Args:
        module: the layer package's `__name__`. Its docstring becomes part of the class's.
        type: Caffe's name of the layer, as REGISTER_LAYER_CLASS has it.

    Returns:
        A subclass of CaffeModule. Its docstring lists the type's fields in caffe.proto.

    Raises:
        CaffeTypeError: `module` is not a package's name, or `type` is not a name.
        CaffeRuntimeError: the layer is not built.
    """
    if not isinstance(module, str):
        raise CaffeTypeError(
            f"caffe_layer: module: expected a layer package's __name__, got {describe(module)}"
        )
    layer = caffe_package(module)
    if not (isinstance(type, str) and re.fullmatch(r"\w+", type)):
        raise layer.wrong("type", "the name in REGISTER_LAYER_CLASS(...), such as 'Normalize'", type)
    fields = Parameters(layer.folder).describe(type)
    about = inspect.cleandoc(getattr(sys.modules.get(module), "__doc__", None) or "")
    about = textwrap.indent(f"\n{about}\n", "    ") if about else ""
    text = _DOCUMENTATION.format(type=type, folder=f"layers/{layer.name}", fields=fields, about=about)
    members = {
        "layer": layer,
        "type_name": type,
        "graph_operator": GraphOperator(module, type),
        "__doc__": text,
        "__module__": module,
        "__qualname__": type,
    }
    return CaffeModule.__class__(type, (CaffeModule,), members)


class CaffeModule(nn.Module):
    """The base of the modules of all Caffe layers. `caffe_layer` makes a subclass for each type."""

    layer: Layer
    type_name: str
    graph_operator: GraphOperator

    def __init__(self, prototxt: str | dict | None = None, *, bottom=(), top=(), **parameters):
        super().__init__()
        message = Parameters(self.layer.folder).layer_parameter(
            self.type_name, prototxt, bottom=bottom, top=top, **parameters
        )
        self.training = not getattr(message, "phase", 0)  # phase: TEST, as in the layers of a testing Net
        self._multipliers_in_file = [(spec.lr_mult, spec.decay_mult) for spec in message.param]
        self.lr_mult, self.decay_mult = ([said[i] for said in self._multipliers_in_file] for i in range(2))
        self.propagate_down = list(getattr(message, "propagate_down", ()))  # protos before 2015-03 have none
        names = tuple(message.bottom), tuple(message.top)
        definition = Definition(self.layer.module, self.type_name, message.SerializeToString(), *names)
        self._pool = Pool(definition)
        self._text = str(message)
        self._mode: str | None = None

    @property
    def lr_mult(self) -> list[float]:
        """The multiplier of each parameter blob. A blob with 0 requires no gradient; blobs beyond the list require one.

        The layer's SetUp may change them, often to 0 for statistics. This counts from the first call on.
        """
        return self._lr_mult

    @lr_mult.setter
    def lr_mult(self, lr_mult) -> None:
        self._lr_mult = self._listed("lr_mult", lr_mult, (int, float), "numbers")

    @property
    def decay_mult(self) -> list[float]:
        """The multiplier of each parameter blob, for your optimizer; 1 for blobs beyond the list."""
        return self._decay_mult

    @decay_mult.setter
    def decay_mult(self, decay_mult) -> None:
        self._decay_mult = self._listed("decay_mult", decay_mult, (int, float), "numbers")

    @property
    def propagate_down(self) -> list[bool]:
        """For each bottom: may it get a gradient? Empty: all bottoms that require a gradient get one."""
        return self._propagate_down

    @propagate_down.setter
    def propagate_down(self, propagate_down) -> None:
        self._propagate_down = self._listed("propagate_down", propagate_down, bool, "bools")

    def _listed(self, name: str, values, kinds, what: str) -> list:
        right = isinstance(values, (list, tuple)) and all(isinstance(value, kinds) for value in values)
        if not right:
            raise self.layer.wrong(name, f"a list of {what}", values)
        return list(values)

    def __prepare_scriptable__(self):
        refuse_script(self.layer.name)

    @property
    def definition(self) -> Definition:
        """The definition from which the layer's C++ objects are made."""
        return self._pool.definition

    def extra_repr(self) -> str:
        return " ".join(self._text.split())

    @property
    def mode(self) -> str | None:
        """Which code runs on CPU tensors.

        'cpu': the layer's CPU code. 'gpu': its kernels, on the host. None: the CPU code if there is any, else the
        kernels.
        """
        return self._mode

    @mode.setter
    def mode(self, mode: str | None) -> None:
        if mode not in (None, *MODES):
            raise CaffeValueError(f"{self.layer.name}: mode: expected 'cpu', 'gpu' or None, got {mode!r}")
        self._mode = mode

    @property
    def iteration(self) -> int | None:
        """The training loop's iteration. Some layers ask their net for it: flownet2's schedules, names of files.

        None: it was not set, and a layer that asks raises an error.
        """
        return None if self._pool.iteration < 0 else self._pool.iteration

    @iteration.setter
    def iteration(self, iteration: int | None) -> None:
        if iteration is not None:
            iteration = self.layer.integer("iteration", iteration, 0)
        self._pool.iteration = -1 if iteration is None else iteration

    # ---------------------------------------------------------------------------------------- calls

    def forward(self, *bottoms: Tensor, **named):
        """Run the layer's Reshape and Forward; autograd runs its Backward.

        Args:
            bottoms: a tensor for each bottom, in the layer's order; float32 or float64, all of one dtype and on one
                device. Any strides: a bottom that is not contiguous is copied.
            named: refused, with an error that says so.

        Returns:
            One top as a tensor, several as a tuple, none as (). Shapes are the layer's; dtype and device are those of
            the bottoms. A top that the layer computes in place is the bottom itself.

        Raises:
            CaffeTypeError: a bottom is not a tensor, or has a wrong dtype or device.
            CaffeValueError: the layer does not accept this number of bottoms.
            CaffeRuntimeError: a CHECK of the layer failed, or its code for this device is not built.
        """
        if isinstance(named, dict) and named:  # torch.fx gives a proxy
            raise CaffeTypeError(
                f"{self.layer.name}: takes its bottoms in order, not by name: {', '.join(named)}"
            )
        if self._propagate_down:
            bottoms = self._detached(bottoms)
        if is_dynamo_compiling():
            pool = self._pool
            # torch does the same with its own operators whose sizes depend on values.
            takes_in = not pool.varying or torch._dynamo.config.capture_dynamic_output_shape_ops
            set_up = pool.blob_shapes is not None
            return self._in_a_graph(bottoms) if set_up and takes_in else _outside_of_the_graph(self, *bottoms)
        answer = autograd.call_module(self, bottoms)
        return self._careful(bottoms) if answer is None else answer

    def _careful(self, bottoms: tuple[Tensor, ...]):
        """Do the rest of a call that C did not make: convert the bottoms, make an instance, or word the error."""
        if (node := fx_node(self, self.layer.name, bottoms)) is not None:
            return node
        pool = self._pool
        pool.check_bottoms(len(bottoms))
        tracing = torch._C._is_tracing()
        if tracing:
            explain_onnx(self.layer.name, self.graph_operator.operator)
        if tracing or any(is_fake(b) for b in bottoms):
            return self._in_a_graph(bottoms)
        with placed(pool, bottoms, self._blobs, self.training, self._set_up) as (site, bottoms, blobs):
            inputs = (*bottoms, *blobs)
            wants = torch.is_grad_enabled() and any(t.requires_grad for t in inputs)
            # In forward mode, too: autograd raises an error for tangents, and Forward would lose them.
            if pool.has_tops and (wants or forward_ad._current_level >= 0):
                with torch.no_grad(), services.watched_draws() as states:
                    wanted = [t.requires_grad for t in inputs]
                    instance, mode, tops = pool.forward(site, self._mode, bottoms, blobs, wanted)
                call = CaffeCall(pool, self._mode, mode, instance, states, tops)
                return self._answer(apply(call, *inputs))
            instance, _, tops = pool.forward(site, self._mode, bottoms, blobs, [False] * len(inputs))
            pool.release(instance)
            for i in pool.in_place.values():
                if not bottoms[i].is_inference():
                    torch.autograd.graph.increment_version(bottoms[i])
            return self._answer(tops)

    def _answer(self, tops):
        """The result of a call: the only top, or a tuple of all, times their loss_weights.

        Torch multiplies, so Forward and Backward do not use the weights.
        """
        if self._pool.weighs:
            pairs = zip(tops, self._pool.weights, strict=True)
            tops = [top if weight == 1 else top * weight for top, weight in pairs]
        return tops[0] if len(tops) == 1 else tuple(tops)

    def _in_a_graph(self, bottoms: tuple[Tensor, ...]):
        """Call the operator of torch.library: for torch.compile, torch.export, fake tensors and torch.jit.trace."""
        pool = self._pool
        if pool.blob_shapes is None:
            raise CaffeRuntimeError(f"{self.layer.name}: {_SET_UP_FIRST}")
        in_place = pool.in_place
        written = tuple(in_place.values())
        inputs = [b.clone() if i in written else b for i, b in enumerate(bottoms)]
        tops = self.graph_operator(self._text, self.training, self._mode, pool.varying, inputs, self._blobs())
        overwritten = {} if pool.definition.keeps_bottoms else in_place
        tops = [bottoms[in_place[i]].copy_(top) if i in overwritten else top for i, top in enumerate(tops)]
        return self._answer(tops)

    def _detached(self, bottoms: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The bottoms, detached where propagate_down is false."""
        if type(bottoms) is not tuple:  # torch.fx's, which _careful handles
            return bottoms
        if len(bottoms) != len(self.propagate_down):
            raise CaffeValueError(
                f"{self.layer.name}: propagate_down is for {len(self.propagate_down)} bottoms, got {len(bottoms)}"
            )
        pairs = zip(bottoms, self.propagate_down, strict=True)
        return tuple(b if wanted or not isinstance(b, Tensor) else b.detach() for b, wanted in pairs)

    def _blobs(self) -> Sequence[Tensor | None]:
        """The parameter blobs, by getattr, because a replica of DataParallel has no nn.Parameters. None: it is lost."""
        shapes = self._pool.blob_shapes
        if shapes is not None:
            return [getattr(self, f"blob{i}", None) for i in range(len(shapes))]
        return self._own_blobs()

    def _own_blobs(self) -> list[Tensor]:
        """The parameter blobs that there are before it is set up."""
        blobs: list[Tensor] = []
        while hasattr(self, name := f"blob{len(blobs)}"):
            blobs.append(getattr(self, name))
            if not isinstance(blobs[-1], Tensor):
                raise self.layer.wrong(name, "a parameter, or none before the first call", blobs[-1])
        return blobs

    # --------------------------------------------------------------------------------------- set up

    def setup(self, *bottoms, dtype: torch.dtype | None = None, device=None) -> "CaffeModule":
        """Make the parameter blobs without a call.

        Args:
            bottoms: a shape, or a tensor, for each bottom.
            dtype, device: of bottoms that are given as shapes. Default: torch's.

        Returns:
            The module itself.

        Raises:
            CaffeTypeError: a bottom is neither a shape nor a tensor, or the dtype is not float32 or float64.
            CaffeRuntimeError: a CHECK of the layer's SetUp or Reshape failed.
        """
        refuse_transforms(self.layer)
        self._pool.check_bottoms(len(bottoms))
        tensors = [b for b in bottoms if isinstance(b, Tensor)]
        floating = next((t for t in tensors if t.dtype in DTYPES), None)
        if device is None:
            device = tensors[0].device if tensors else torch.get_default_device()
        try:
            device = torch.empty(0, device=device).device
        except (TypeError, RuntimeError, AssertionError):  # AssertionError: this torch was built without GPUs
            raise self.layer.wrong("setup: device", "a device of this machine", device) from None
        if dtype is None:
            dtype = floating.dtype if floating is not None else dtype_of([], self._blobs())
        if not isinstance(dtype, torch.dtype) or dtype not in DTYPES:
            raise CaffeTypeError(
                f"{self.layer.name}: dtype: Caffe layers compute in float32 or float64, not {dtype}"
            )
        shapes = [self._shape(i, b) for i, b in enumerate(bottoms)]
        with guarded(device):
            self._set_up(site_at(device, dtype, phase_of(self.training)), shapes)
        return self

    def top_shapes(self, *bottoms: Shape) -> list[Shape]:
        """The tops' shapes for bottoms of these shapes, by the layer's own SetUp and Reshape, without Forward.

        Args:
            bottoms: a shape, or a tensor, for each bottom.

        Returns:
            A shape for each top.

        Raises:
            CaffeTypeError: a bottom is neither a shape nor a tensor.
            CaffeRuntimeError: a CHECK of the layer failed.
        """
        if self._pool.blob_shapes is None:
            self.setup(*bottoms)
        shapes = tuple(self._shape(i, b) for i, b in enumerate(bottoms))
        device = torch.device(self.layer.any_backend().device)
        with guarded(device):
            site = site_at(device, dtype_of([], self._blobs()), phase_of(self.training))
            return list(self._pool.reshape(site, self._mode, shapes))

    def _shape(self, i: int, bottom) -> Shape:
        if isinstance(bottom, Tensor):
            return tuple(bottom.shape)
        name = f"setup: {self._pool.definition.bottom_name(i)}"
        try:
            shape = tuple(operator.index(size) for size in bottom)
        except TypeError:
            hint = " (m.setup((2, 3, 4, 5)): a tuple for each bottom)" if isinstance(bottom, int) else ""
            raise self.layer.wrong(name, f"a shape or a tensor{hint}", bottom) from None
        self.layer.check(
            all(0 <= size < 1 << 31 for size in shape), name, "sizes that an int can hold", shape
        )
        return shape

    def _set_up(self, site: Site, bottoms: Sequence[Tensor | Shape]) -> None:
        if getattr(self, "_is_replica", False):
            raise CaffeRuntimeError(
                f"{self.layer.name}: call m.setup(...) before DataParallel copies the module"
            )
        with self._pool.lock:
            if self._pool.blob_shapes is not None:
                return
            known = self._own_blobs()
            blobs = self._pool.set_up(site, self._mode, bottoms, known)
            self._take_multipliers()
            for i, blob in enumerate(blobs):
                if not known:
                    self._new_blob(i, blob.to(site.torch_device))
                    continue
                if known[i].shape != blob.shape:
                    self._reshape_blob(i, known[i], blob)
                if i < len(self.lr_mult) and self.lr_mult[i] == 0:
                    known[i].requires_grad_(False)

    def _take_multipliers(self) -> None:
        """Take the multipliers that SetUp changed."""
        said = self._multipliers_in_file + [(1.0, 1.0)] * len(self._pool.multipliers)
        for i, changed in enumerate(self._pool.multipliers):
            for values, before, after in zip(
                (self._lr_mult, self._decay_mult), said[i], changed, strict=True
            ):
                if after != before:
                    values += [1.0] * (i + 1 - len(values))
                    values[i] = after

    def _new_blob(self, i: int, values: Tensor) -> None:
        trained = (i >= len(self.lr_mult) or self.lr_mult[i] != 0) and values.is_floating_point()
        # Not an inference tensor, even if this call runs in inference mode: the blob may be trained later.
        with torch.inference_mode(False):
            values = values.clone() if values.is_inference() else values
            self.register_parameter(f"blob{i}", nn.Parameter(values, requires_grad=trained))

    def _reshape_blob(self, i: int, loaded: Tensor, blob: Tensor) -> None:
        """Give a loaded blob the layer's shape: blobs of an old caffemodel have axes of size 1 in front."""
        if not fits(blob.shape, loaded.shape, legacy=loaded.dim() == 4):
            raise CaffeValueError(
                f"{self.layer.name}: blob{i}: expected {list(blob.shape)}, loaded {list(loaded.shape)}"
            )
        loaded.data = loaded.data.reshape(blob.shape)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        """Make missing blobs in the shapes of the state dict, which set up checks."""
        i = 0
        while not hasattr(self, f"blob{i}") and isinstance(
            values := state_dict.get(f"{prefix}blob{i}"), Tensor
        ):
            self._new_blob(i, torch.empty_like(values, device=torch.get_default_device()))
            i += 1
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def load_caffemodel(self, path, layer_name: str) -> "CaffeModule":
        """Load the parameter blobs from one layer of a .caffemodel file.

        Args:
            path: the file.
            layer_name: the layer's name in the file.

        Returns:
            The module itself. New blobs get torch's default dtype.

        Raises:
            CaffeValueError: the file has no such layer, another number of blobs, or a blob of another shape.
            FileNotFoundError: there is no such file.
        """
        path = path_of(f"{self.layer.name}: load_caffemodel: path", path)
        blobs = blobs_of(path, layer_name)
        known = dict(self.named_parameters(recurse=False))
        if known and len(known) != len(blobs):
            raise CaffeValueError(
                f"{self.layer.name}: {path} has {len(blobs)} blobs for {layer_name!r}, the layer has {len(known)}"
            )
        for i, (stored, values) in enumerate(blobs):
            if not known:
                self._new_blob(i, values.to(torch.get_default_dtype()))
                continue
            blob = known[f"blob{i}"]
            if not stored.fits(blob.shape):
                raise CaffeValueError(
                    f"{self.layer.name}: blob{i}: expected {list(blob.shape)}, {path} has {list(values.shape)}"
                )
            with torch.no_grad():
                blob.copy_(values.reshape(blob.shape))
        return self


_SET_UP_FIRST = (
    "call the module once, or m.setup(shape, ...), before it becomes part of a graph: its parameter blobs "
    "are made then"
)


def _outside_of_the_graph(module: CaffeModule, *bottoms: Tensor):
    return torch.compiler.disable(CaffeModule.__call__)(module, *bottoms)


# Marked as torch.compiler.disable would mark it. The decorator itself imports torch._dynamo, which takes two seconds.
vars(_outside_of_the_graph).update(
    _torchdynamo_disable=True,
    _torchdynamo_disable_msg=f"{_SET_UP_FIRST}. If its tops' sizes depend on values, "
    "torch._dynamo.config.capture_dynamic_output_shape_ops = True takes it in",
)

"""Stock Caffe's layer types as torch modules, by family: `SoftmaxWithLoss` is in losses.py.

Each computes what BVLC/caffe's own code computes, forward and gradient.
"""

import importlib
from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from google.protobuf.text_format import ParseBool
from torch import nn

from ...base import CaffeValueError
from ...caffe_files.prototxt import number
from ._late_checks import refuse_later

Shape = tuple[int, ...]


def _is_in_graph(tensor: torch.Tensor) -> bool:
    """Is this call compiled, or captured by a CUDA graph?"""
    return torch.compiler.is_compiling() or (tensor.is_cuda and torch.cuda.is_current_stream_capturing())


def nothing_left(shape: Shape, kernel) -> str:
    """The words for a kernel that is larger than its input."""
    what = f"nothing is left of {list(shape)} by a kernel of {kernel}"
    return f"{what}: give larger shapes, a smaller kernel_size, or pad"


class StockDefinition(NamedTuple):
    """The data from which a layer's module is made."""

    name: str
    message: Any  # the LayerParameter
    bottoms: int
    tops: int
    extra: dict[
        str, str
    ]  # values of forks' fields that the type understands, by path; several values are joined by spaces
    stored_blobs: int | None = None  # the number of the layer's blobs in the weights, if they have the layer

    def filler(self, filler, path: str):
        """A FillerParameter, or an object that fills by the fields that only forks have."""
        if filler.type != "diagonal":
            return filler
        values = self.extra.get(f"{path}.diag_val", "").split()
        return SimpleNamespace(type="diagonal", sparse=filler.sparse, diag_val=[number(v) for v in values])

    def flag(self, field: str, default: bool) -> bool:
        """The value of a fork's bool field."""
        try:
            return ParseBool(self.extra[field]) if field in self.extra else default
        except ValueError:
            wanted = f"{field}: expected true or false, got {self.extra[field]}"
            raise CaffeValueError(wanted) from None


def _agree(self, *shapes: Shape) -> None:
    """Check that bottoms of these shapes fit one another, as Caffe's Reshape does: before `setup`, and in each
    call of a net for a type with several bottoms. So torch never broadcasts what Caffe refuses.
    """


def _setup(self, *shapes: Shape) -> None:
    """Make the parameters for bottoms of these shapes; called once."""


def _top_shapes(self, *shapes: Shape) -> list[Shape] | None:
    """The tops' shapes, if forward needs real values to know them. None: forward runs on fake tensors."""
    return None


class StockLayer(nn.Module):
    """The base of types of stock Caffe and of forks. `setup` gets the shapes, and makes the parameters.

    `bottoms` and `tops` are the least and the greatest number that the type accepts; None: any number.
    """

    bottoms: tuple[int, int | None] = (1, 1)
    tops: tuple[int, int | None] = (1, 1)
    blobs: tuple[str, ...] = ()  # names of the parameters, in Caffe's order
    statistics: tuple[str, ...] = ()  # those that are buffers, not parameters
    is_loss = False
    understands: tuple[str, ...] = ()  # fields of forks: "pooling_param.ceil_mode"
    kept: tuple[str, ...] = ()  # attributes that a call changes, besides buffers

    def __init__(self, definition: StockDefinition):
        super().__init__()
        self.layer_name = definition.name
        self.top_count = definition.tops
        self.is_set_up = False
        self._fillers: dict[str, object] = {}
        if misfit := self.misfit(definition.bottoms, definition.tops):
            raise CaffeValueError(misfit)

    @classmethod
    def misfit(cls, bottoms: int, tops: int) -> str:
        """Why the type does not accept this number; "" if it does."""
        for what, count, (least, most) in (("bottoms", bottoms, cls.bottoms), ("tops", tops, cls.tops)):
            if count < least or (most is not None and count > most):
                wanted = (
                    least if least == most else f"{least} or more" if most is None else f"{least} to {most}"
                )
                return f"takes {wanted} {what}, not {count}"
        return ""

    def check(self, condition: bool, what: str, *values) -> None:
        """Like Caffe's CHECK: a CaffeValueError that names the layer. values: for each {} of the text."""
        if not condition:
            shown = (list(value) if isinstance(value, tuple) else value for value in values)
            raise CaffeValueError(f"{self.layer_name}: {what.format(*shown) if values else what}")

    def check_rows(self, wrong: torch.Tensor, what: str) -> None:
        """Like Caffe's CHECK of each row's values: a CaffeValueError if one is wrong. In a graph, compiled or captured,
        torch's assertion on the device, which waits for nothing: a RuntimeError, on a GPU that of CUDA.
        """
        if _is_in_graph(wrong):
            self.check_rows_in_graph(~wrong, what)
        else:
            self.check(not bool(wrong.any()), what)

    def check_rows_in_graph(self, right: torch.Tensor, what: str) -> None:
        """torch's assertion on the device that all rows are right."""
        torch._assert_async(right.all(), f"{self.layer_name}: {what}")

    def check_values_later(self, values: torch.Tensor, above: float, below: float, what: str) -> None:
        """As check_rows of values [n] that are not between these numbers, but a call on a GPU waits for no answer.

        A later call raises the error (_late_checks.py). What the layer computes must be safe with wrong values, too.
        """
        if _is_in_graph(values):
            self.check_rows_in_graph((values > above) & (values < below), what)
        elif values.is_cuda:
            refuse_later(values, above, below, f"{self.layer_name}: {what}")
        else:
            self.check_rows(~((values > above) & (values < below)), what)

    # What a type overrides, with its own bottoms as arguments.
    agree: Callable[..., None] = _agree
    setup: Callable[..., None] = _setup
    top_shapes: Callable[..., list[Shape] | None] = _top_shapes

    def blob(self, name: str, shape: Shape, filler) -> None:
        """Make a parameter blob, not yet filled. filler: a FillerParameter, or fillers.constant(...)."""
        self._fillers[name] = filler
        if name in self.statistics:
            self.register_buffer(name, torch.empty(shape))
        else:
            self.register_parameter(name, nn.Parameter(torch.empty(shape)))

    def fill(self, keep: Collection[str] = ()) -> None:
        """Fill the blobs, except those of these names, which were loaded or which another layer owns."""
        from ..net.fillers import fill  # whose package imports this one

        for name, filler in self._fillers.items():
            if name not in keep:
                try:
                    fill(getattr(self, name), filler)
                except CaffeValueError as error:
                    raise CaffeValueError(f"{self.layer_name}: {name}: {error}") from None
        self._fillers = {}

    def reset(self) -> None:
        """Reset the state of earlier calls. Parameters and statistics stay."""

    def present_blobs(self) -> list[str]:
        """The names of the blobs that the layer has, in Caffe's order."""
        return [name for name in self.blobs if getattr(self, name, None) is not None]

    def axis(self, axis: int, dims: int) -> int:
        """Caffe's CanonicalAxisIndex."""
        axes = f"{dims} axes, which are 0 to {dims - 1}, or from the end -1 to {-dims}"
        self.check(-dims <= axis < dims, f"axis {axis} out of range for a bottom of {axes}")
        return axis + dims if axis < 0 else axis

    def extra_repr(self) -> str:
        own = {name: value for name, value in vars(self).items() if name[0] != "_" and name not in _COMMON}
        plain = int | float | str | tuple
        return ", ".join(f"{name}={value}" for name, value in own.items() if isinstance(value, plain))


def root(squares: torch.Tensor, eps: float) -> torch.Tensor:
    """The square root, with the slope 1 / (2 (root + eps)), as Caffe's layers divide. It is finite at 0."""
    fixed = squares.detach().sqrt()
    return fixed + (squares - squares.detach()) / (2 * (fixed + eps))


class Sloped(torch.autograd.Function):
    """`top`, whose gradient for x is `slope`, also where that is infinite or no number."""

    @staticmethod
    def forward(ctx, x, top, slope):
        ctx.save_for_backward(slope)
        return top.clone()

    @staticmethod
    def backward(ctx, *gradients):
        return gradients[0] * ctx.saved_tensors[0], None, None


def legacy(layer: StockLayer, shape: Shape) -> tuple[int, int, int, int]:
    """Num, channels, height and width: Caffe's old accessors take missing axes as 1."""
    layer.check(len(shape) <= 4, "a bottom of at most 4 axes is needed, not {}", shape)
    num, channels, height, width = (*shape, *(1,) * (4 - len(shape)))
    return num, channels, height, width


_COMMON = ("training", "layer_name", "top_count", "is_set_up", "call_super_init", "dump_patches")


# The types of each module, which is imported when a net has one of them.
FAMILIES = {
    "activations": (
        "AbsVal BNLL Clip Dropout ELU Exp Log Power PReLU ReLU Sigmoid Softmax Swish TanH Threshold"
    ),
    "arithmetic": "InnerProduct Embed Parameter Scale Bias Eltwise Reduction",
    "convolutions": "Convolution Deconvolution Im2col",
    "losses": (
        "SoftmaxWithLoss MultinomialLogisticLoss InfogainLoss SigmoidCrossEntropyLoss HingeLoss "
        "EuclideanLoss ContrastiveLoss Accuracy ArgMax"
    ),
    "normalisation": "BatchNorm LRN MVN",
    "pooling": "Pooling SPP",
    "recurrent": "LSTMUnit LSTM RNN",
    "shapes": "Concat Slice Split Crop Tile Flatten Reshape Silence BatchReindex Filter",
}
_FAMILY = {name: family for family, names in FAMILIES.items() for name in names.split()}


def stock_class(type_name: str) -> type[StockLayer] | None:
    """The class of a stock type; None if it is not a stock type, or torch does not compute it."""
    family = _FAMILY.get(type_name)
    return getattr(importlib.import_module(f".{family}", __name__), type_name) if family else None


def stock_types() -> list[str]:
    """The stock types that torch computes."""
    return list(_FAMILY)


def blobs_of(module: nn.Module) -> list[tuple[str, torch.Tensor]]:
    """The parameter blobs of a stock layer, or of a ported one, by their attributes, in Caffe's order."""
    if (present := getattr(module, "present_blobs", None)) is not None:
        return [(name, getattr(module, name)) for name in present()]
    found = []
    while (blob := getattr(module, f"blob{len(found)}", None)) is not None:
        found.append((f"blob{len(found)}", blob))
    return found


def share_blob(module: nn.Module, i: int, tensor: torch.Tensor) -> None:
    """Let a layer compute with another tensor's memory in place of its blob i. CaffeValueError: their shapes differ."""
    attribute, own = blobs_of(module)[i]
    if own.shape != tensor.shape:
        shapes = f"{list(own.shape)}, the new one {list(tensor.shape)}"
        raise CaffeValueError(
            f"{module.layer_name}: blob {i} has the shape {shapes}: write to its data instead"
        )
    if not isinstance(own, nn.Parameter):
        tensor = tensor.detach()
    elif not isinstance(tensor, nn.Parameter):
        tensor = nn.Parameter(tensor.to(own.device), own.requires_grad)
    setattr(module, attribute, tensor)

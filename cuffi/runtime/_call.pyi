"""The extension that makes calls (src/edge/call.cpp and a wing's part of it), for type checkers."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

# Of the build: the digest of its sources.
EDGE: str

# The kinds of a launcher's parameters, and their flags.
TENSOR: int
LIKE: int
DTYPE: int
STREAM: int
INTEGER: int
UNSIGNED64: int
FLOAT: int
DOUBLE: int
BOOL: int
IS_WRITTEN: int
MAY_BE_NULL: int
# The steps of a formula.
NUMBER: int
PARAMETER: int
ADD: int
SUBTRACT: int
MULTIPLY: int
DIVIDE: int
NEGATE: int
# The sources of a launch's words, in a plan.
CONSTANT: int
ARGUMENT: int
ALLOCATION: int
CURRENT_STREAM: int
# What autocast does to an operator's tensors.
CAST_PROMOTE: int
CAST_LOWER: int
CAST_FLOAT32: int
CAST_NONE: int
MOST_PARAMETERS: int
# The steps of a launcher that is data (kernels.py): their names by number, and where values lie.
OPERATIONS: tuple[str, ...]
MOST_REGISTERS: int
MOST_LOCAL: int
DATA_AT: int
LOCAL_AT: int

def configure(values: dict[str, Any], /) -> None: ...
def images(*arguments) -> Any: ...
def program(*arguments) -> Any: ...
def compute(program, words, /) -> Any: ...
def kernels_error() -> str: ...
def driver(path, /) -> Any: ...

class Plan:
    def __init__(
        self, *, device_type: int, device: int, allocations: tuple, empty: int, launches: tuple,
        results: tuple[int, ...], returns_tuple: bool,
    ): ...  # fmt: skip

class Launcher:
    def __init__(
        self, *, parameters: tuple[tuple, ...], codes: tuple[tuple[int, int], ...], any_layout: bool,
        returns_number: bool, careful: Callable[..., Any], fail: Callable[[int], None],
    ): ...  # fmt: skip
    def __call__(self, *arguments, **named) -> Any: ...
    def attempt(self, *arguments) -> Any: ...
    def too_small(self, *arguments) -> tuple[int, tuple[int, ...]] | None: ...
    def attach(self, device_type: int, run: int, is_program: bool, set_num_threads: int, /) -> None: ...

class Short:
    def __init__(
        self, *, parameters: str, defaults: tuple, casts: int, careful: Callable[..., Any],
        plain: Callable[..., Any], planning: Callable[..., Any], cast: Callable[..., Any],
    ): ...  # fmt: skip
    def __call__(self, *arguments, **named) -> Any: ...
    def __len__(self) -> int: ...
    def add(self, arguments: tuple, plan: Plan, /) -> None: ...
    def plans(self) -> int: ...
    def clear(self) -> None: ...
    def differentiate(
        self, *, apply: Callable[..., Any], save: Callable[..., Any] | tuple[int, ...] | None,
        backward: Callable[..., Any], by: Short | None,
    ) -> None: ...  # fmt: skip
    def forward(self, ctx, *arguments) -> Any: ...
    def backward(self, ctx, *top_diffs) -> Any: ...
    def in_torch(
        self, *, registered: Callable[..., Any], autograd: Callable[..., Any] | None, op: Callable[..., Any]
    ) -> None: ...
    def kernel(self, *arguments, **named) -> Any: ...
    def autograd(self, *arguments, **named) -> Any: ...
    def op(self, *arguments, **named) -> Any: ...

# Of cuffi/caffe_layers/edge/call_caffe.cpp. The gradients, and the tops, are None if in doubt.
def configure_caffe(values: dict[str, Any], /) -> None: ...
def call_module(module, bottoms: tuple, /) -> Any: ...
def differentiate(
    call, saved: tuple[Tensor, ...], top_diffs: tuple[Tensor, ...], wanted: tuple[bool, ...], /
) -> tuple[Tensor | None, ...] | None: ...
def run_forward(
    instance, mode: str, iteration: int, inputs: tuple[Tensor, ...], wanted: Sequence[bool], given, /
) -> list[Tensor] | None: ...
def run_backward(
    instance, mode: str, iteration: int, all: tuple[Tensor, ...], wanted: Sequence[bool], before, /
) -> list[Tensor | None] | None: ...

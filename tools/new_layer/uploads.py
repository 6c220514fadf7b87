"""What a launcher uploads before each launch: the values of variables that the file's host code fills (symbols.py)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from .c_types import C_TYPES, VECTORS, tidy_words
from .kernel_launcher import NoLauncher
from .launcher_arguments import Arguments
from .symbols import Symbol


class Upload(NamedTuple):
    """A variable, and the launcher's parameter for it."""

    symbol: Symbol
    parameter: str
    count: int  # of its elements; 0 for a pointer, whose value is the tensor's address

    def statement(self) -> str:
        """C++ that fills the variable on the current stream."""
        there = f"{self.symbol.scope or '::'}{self.symbol.name}"
        start = f"  CUDA_CHECK(cudaMemcpyToSymbolAsync({there}, "
        end = "                                     CAFFE_STREAM(stream)));"
        if not self.count:
            return f"{start}&{self.parameter}, sizeof({there}), 0, cudaMemcpyHostToDevice,\n{end}"
        return (
            f"  static_assert(sizeof({there}) == {self.count} * sizeof(*{self.parameter}), "
            f'"{self.symbol.name} has another size");\n'
            f"{start}{self.parameter}, sizeof({there}), 0, cudaMemcpyDeviceToDevice,\n{end}"
        )


def add_uploads(arguments: Arguments, symbols: Iterable[Symbol]) -> list[Upload]:
    """Add a parameter for each variable that the host code fills."""
    return [_upload(arguments, symbol) for symbol in symbols]


def _upload(arguments: Arguments, symbol: Symbol) -> Upload:
    pointed = tidy_words(symbol.type[:-1])
    if symbol.type.endswith("*") and pointed in C_TYPES and symbol.sizes == ():
        const = "const " * ("const" in symbol.type.split())
        kind = f"{const}{C_TYPES[pointed][1]} *"
        return Upload(symbol, arguments.add_parameter(kind, symbol.name).name, 0)
    element, name = tidy_words(VECTORS.get(symbol.type, symbol.type)), f"{symbol.name}_values"
    bare = symbol.type.split()[-1]
    if bare in arguments.file.rows and symbol.sizes is not None and (layout := arguments.layout(bare)):
        parameter = arguments.add_parameter("const uint8_t *", name).name
        return Upload(symbol, parameter, math.prod(symbol.sizes) * layout[0])
    if element not in C_TYPES:
        raise NoLauncher(
            f"reads {symbol.name}, a {symbol.type}, which the host code fills and C can't give it"
        )
    if symbol.sizes is None:
        raise NoLauncher(f"reads {symbol.name}, which the host code fills, and whose size is unknown")
    parameter = arguments.add_parameter(f"const {C_TYPES[element][1]} *", name).name
    parts = int(symbol.type[-1]) if symbol.type in VECTORS else 1
    return Upload(symbol, parameter, math.prod(symbol.sizes) * parts)

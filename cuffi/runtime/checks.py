"""Checks of arguments. Their errors read '<layer>: <argument>: expected <wanted>, got <got>'."""

import operator

import torch
from torch import Tensor

from ..backends import DEVICES
from ..base.errors import CaffeTypeError, CaffeValueError, describe


class Checks:
    """The checks of one layer.

    Attributes:
        name: the layer's name; every error message begins with it.
    """

    def __init__(self, name: str):
        self.name = name

    def check(self, condition: bool, argument: str, wanted: str, got) -> None:
        """Raise CaffeValueError('<layer>: <argument>: expected <wanted>, got <got>') unless the condition holds."""
        if not condition:
            got = describe(got) if isinstance(got, Tensor) else got
            raise CaffeValueError(f"{self.name}: {argument}: expected {wanted}, got {got}")

    def wrong(self, argument: str, wanted: str, got) -> CaffeTypeError:
        return CaffeTypeError(f"{self.name}: {argument}: expected {wanted}, got {describe(got)}")

    def check_tensor(self, name: str, value, *, meta: bool = False) -> None:
        """Raise CaffeTypeError unless the value is a dense tensor on a device that layers are built for.

        Args:
            meta: accept tensors without data, too, because only shapes are computed.
        """
        if not isinstance(value, Tensor):
            raise self.wrong(name, "a tensor", value)
        if value.layout != torch.strided or value.is_nested or value.is_quantized:
            raise self.wrong(name, "a dense tensor", value)
        if value.device.type not in DEVICES and not (meta and value.is_meta):
            raise self.wrong(name, f"a tensor on {' or '.join(DEVICES)}", value)

    def integer(self, name: str, value, least: int, most: int = 2**31 - 1) -> int:
        """The value of a parameter as an int. Accepts what operator.index accepts, such as a numpy integer, but no
        bool.

        Raises:
            CaffeTypeError: it is not an integer.
            CaffeValueError: it is less than `least` or more than `most`.
        """
        try:
            if isinstance(value, bool):
                raise TypeError
            number = operator.index(value)
        except TypeError:
            raise self.wrong(name, f"an int, at least {least}", value) from None
        if not least <= number <= most:
            self.check(False, name, f"an int from {least} to {most}", number)
        return number

    def pair(self, name: str, value, least: int) -> tuple[int, int]:
        """An int or a pair of ints as a pair. Raises the errors of `integer`."""
        if type(value) is int and least <= value < 2**31:
            return value, value
        if isinstance(value, (tuple, list)):  # torch.Size is one
            if len(value) != 2:
                self.check(False, name, "an int or a pair of ints", value)
            return self.integer(name, value[0], least), self.integer(name, value[1], least)
        number = self.integer(name, value, least)
        return number, number

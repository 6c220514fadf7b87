"""The arguments of a C function that C does not accept as they are: converted, or an error that names one."""

from __future__ import annotations

import operator
import struct

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ..base.errors import PLAIN, CaffeRuntimeError, CaffeTypeError, dtype_name
from .passed import in_order
from .signature import Signature, integer_range, is_const

# Said of a kernel's template.
COMPILED_FOR = (
    " (its template is compiled for no other type: load_inline(..., instances={kernel: [types]}) names them)"
)
# What a launch needs besides the kernel's own arguments. tools/new_layer/geometry.py asks for it by these names.
_GEOMETRY = {
    "shared_bytes",
    *(f"{what}{axis}" for what in ("grid", "block") for axis in ("", "_x", "_y", "_z")),
}


def _of_the_launch(missing) -> str:
    """The sentence for a call without the geometry of its launch."""
    asked = [name for name in missing if name.rstrip("_") in _GEOMETRY]
    if not asked:
        return ""
    return f". The kernel's source does not determine its launch, so the caller gives {', '.join(asked)}"


class Conversion:
    """Makes of the arguments of one function's calls what C takes.

    Args:
        signature: the function's declaration.
        any_layout: tensors are passed in their own layout. Otherwise inputs are made contiguous.
    """

    def __init__(self, signature: Signature, any_layout: bool):
        self.signature, self.any_layout = signature, any_layout
        self.checks, self.function = signature.checks, signature.function

    def counted(self, arguments: tuple, named: dict) -> tuple:
        """An argument for each parameter that is passed."""
        signature = self.signature
        try:
            names = tuple(name for _, name in signature.passed)
            arguments = in_order(names, arguments, named, signature.geometry, signature.launched)
        except CaffeTypeError as error:
            raise CaffeTypeError(f"{self.checks.name}: {self.function}: {error}") from None
        if len(arguments) != len(signature.passed):
            typed = ", ".join(
                f"{kind}{'' if kind.endswith('*') else ' '}{name}" for kind, name in signature.passed
            )
            raise CaffeTypeError(
                f"{self.checks.name}: {self.function} takes {len(signature.passed)} arguments, {typed}: "
                f"got {len(arguments)}{_of_the_launch(name for _, name in signature.passed[len(arguments) :])}"
            )
        return arguments

    def converted(self, arguments: tuple) -> tuple:
        """The arguments, converted for C."""
        signature = self.signature
        by_name = {name: a for (_, name), a in zip(signature.passed, arguments, strict=True)}
        pointers = [(t, n) for t, n in signature.passed if t.endswith("*")]
        values = dict(by_name)
        if signature.returns_number:
            values["like"] = self._like(by_name["like"])
        tensors = {n: by_name[n] for _, n in pointers if by_name[n] is not None}
        if not tensors and not signature.returns_number:
            raise CaffeTypeError(f"{self.checks.name}: {self.function}: got no tensor")
        self.check_tensors(tensors)
        others = [(t, n) for t, n in signature.passed if not t.endswith("*") and t != "Tensor"]
        numbers = {name: self._number(kind, name, by_name[name]) for kind, name in others}
        values |= numbers
        for kind, name in pointers:
            if name in tensors:
                values[name] = self._as_c_takes_it(kind, name, tensors[name])
            elif name not in signature.may_be_null:
                raise self.checks.wrong(
                    name, "a tensor (the C declaration does not say that it may be NULL)", None
                )
        return tuple(values[name] for _, name in signature.passed)

    def _like(self, like) -> Tensor:
        if not isinstance(like, Tensor) or like.dtype not in self.signature.libraries.dtypes:
            raise self.checks.wrong(self.function, _one_of(self.signature.libraries.dtypes), like)
        with torch._C._DisableTorchDispatch():
            return torch.empty(0, dtype=like.dtype, device=like.device)

    def _check_tangent(self, name: str, tensor: Tensor) -> None:
        """Refuse a dual tensor of forward-mode AD.

        It has no tangent where torch drops that itself (inference_mode), nor in an autograd.Function's forward, where
        the function's jvp refuses it.
        """
        if forward_ad.unpack_dual(tensor).tangent is not None:
            raise CaffeRuntimeError(
                f"{self.checks.name}: {name}: {self.function} has no forward-mode derivative, and would lose the "
                "tangent. Give it forward_ad.unpack_dual(tensor).primal"
            )

    def check_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Check for dense tensors of the right dtypes on one device."""
        checks, leads = self.checks, {}
        first, kinds = next(iter(tensors), ""), {n: t for t, n in self.signature.passed}
        for name, tensor in tensors.items():
            checks.check_tensor(name, tensor)
            self._check_tangent(name, tensor)
            functorch = torch._C._functorch
            if functorch.is_functorch_wrapped_tensor(tensor) or functorch.is_legacy_batchedtensor(tensor):
                raise CaffeRuntimeError(
                    f"{checks.name}: {name}: torch.func's transforms (vmap, grad, ...) cannot look into a C function"
                )
            kind, dtypes = kinds[name], self.signature.dtypes(kinds[name], name)
            if tensor.dtype not in dtypes:
                compiled = kind.endswith("void *") and name in self.signature.elements
                step = f" (x.to({dtypes[0]}) gives it)" if len(dtypes) == 1 else ""
                raise checks.wrong(name, _one_of(dtypes) + step + COMPILED_FOR * compiled, tensor)
            if kind.endswith("void *"):
                lead = leads.setdefault(self.signature.group(name), name)
                if tensor.dtype != tensors[lead].dtype:
                    raise checks.wrong(name, f"{dtype_name(tensors[lead].dtype)} as '{lead}' has", tensor)
            if tensor.device != tensors[first].device:
                raise checks.wrong(name, f"a tensor on {tensors[first].device} as '{first}' is", tensor)
            if not is_const(kind):
                self._check_output(name, tensor)

    def _check_output(self, name: str, tensor: Tensor) -> None:
        if not self.any_layout and not tensor.is_contiguous():
            raise self.checks.wrong(name, "a contiguous tensor to write to", tensor)
        if tensor.is_neg() or tensor.is_conj():
            other = "negatives" if tensor.is_neg() else "conjugates"
            raise self.checks.wrong(
                name, f"a tensor to write to, whose memory holds its values, not their {other}", tensor
            )
        if tensor.requires_grad and torch.is_grad_enabled() and tensor.numel():
            raise CaffeRuntimeError(
                f"{self.checks.name}: {name}: autograd does not see what {self.function} writes to a tensor that "
                "requires a gradient: call it under torch.no_grad(), or detach the tensor"
            )

    def _number(self, kind: str, name: str, value):
        """The argument as a number of its C type, or an error that names it."""
        if bounds := integer_range(kind):
            return int(value) if isinstance(value, bool) else self.checks.integer(name, value, *bounds)
        if kind in ("bool", "_Bool"):
            return self._truth(name, value)
        if getattr(getattr(value, "dtype", None), "kind", "f") not in "biuf" or _is_complex(value):  # numpy's
            raise self.checks.wrong(name, "a number", value)
        try:  # float() would read text, too
            number = float(value if hasattr(value, "__float__") else operator.index(value))
        except (TypeError, ValueError, OverflowError, RuntimeError):
            raise self.checks.wrong(name, "a number", value) from None
        if kind == "float":
            try:
                struct.pack("<f", number)  # C would round it to infinity
            except OverflowError:
                self.checks.check(False, name, "a number that a float can hold", value)
        return number

    def _truth(self, name: str, value) -> bool:
        """A bool of Python, numpy or torch, or the number 0 or 1. The truth of anything else is not meant."""
        dtype = getattr(value, "dtype", None)
        try:
            if isinstance(value, bool) or dtype is torch.bool or getattr(dtype, "kind", "") == "b":
                return bool(value)
            if (number := operator.index(value)) in (0, 1):
                return bool(number)
        except (TypeError, ValueError, RuntimeError):
            pass
        raise self.checks.wrong(name, "a bool", value)

    def _as_c_takes_it(self, kind: str, name: str, tensor: Tensor) -> Tensor:
        """Plain, with no negative or conjugate bit, and contiguous unless the layer takes any layout, or an error."""
        if is_const(kind):
            tensor = tensor if self.any_layout else tensor.contiguous()
            # The memory of a view like z.conj().imag holds the negative values.
            tensor = tensor.resolve_neg() if tensor.is_neg() else tensor
            tensor = tensor.resolve_conj() if tensor.is_conj() else tensor
        tensor = tensor if type(tensor) in PLAIN else tensor.as_subclass(Tensor)
        address = tensor.data_ptr()
        if not address and tensor.numel():
            raise self.checks.wrong(
                name, "a tensor that has memory (not a ZeroTensor or a freed one)", tensor
            )
        alignment = max(self.signature.alignments.get(name, 1), tensor.element_size())
        if address % alignment:
            at = f"{address % alignment} bytes beyond such an address"
            self.checks.check(
                False, name, f"memory at a multiple of {alignment} bytes ({at}: clone it)", tensor
            )
        return tensor


def _is_complex(value) -> bool:
    return isinstance(value, Tensor) and value.is_complex()


def _one_of(dtypes: tuple[torch.dtype, ...]) -> str:
    """Tensors of these dtypes, in words."""
    names = [dtype_name(dtype) for dtype in dtypes]
    return f"a tensor of {', '.join(names)}" if len(names) > 2 else " or ".join(names)

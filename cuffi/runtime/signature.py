"""What the header declares of a C function: its parameters, and which tensors each pointer takes."""

from __future__ import annotations

import torch

from .checks import Checks
from .library import INDICES, Libraries

# The bits of a C integer type, by its words besides `int` and the sign. The same on every supported system.
_BITS = {
    "char": 8, "short": 16, "": 32, "long": 64, "long long": 64, "size_t": 64, "ssize_t": 64, "ptrdiff_t": 64,
    "intptr_t": 64, "uintptr_t": 64,
    **{f"{sign}int{bits}_t": bits for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
_UNSIGNED = {"unsigned", "size_t", "uintptr_t", *(f"uint{bits}_t" for bits in (8, 16, 32, 64))}
_OTHERS = {"float": torch.float32, "double": torch.float64, "bool": torch.bool, "_Bool": torch.bool}


def integer_range(kind: str) -> tuple[int, int] | None:
    """The least and the greatest value of a C integer type, such as `unsigned long`; None for another type."""
    words = kind.split()
    bits = _BITS.get(" ".join(w for w in words if w not in ("int", "signed", "unsigned")))
    if bits is None or not words:
        return None
    return (0, 2**bits - 1) if _UNSIGNED & set(words) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def pointed_dtypes(base: str) -> tuple[torch.dtype, ...]:
    """The dtypes of tensors for a typed C pointer. A pointer to unsigned numbers also accepts signed tensors."""
    if base in _OTHERS:
        return (_OTHERS[base],)
    least, most = integer_range(base) or (0, 0)
    bits = (most - least).bit_length()
    if not bits:
        return ()
    signed, unsigned = getattr(torch, f"int{bits}"), getattr(torch, f"uint{bits}")
    if least < 0:
        return (signed,)
    return (unsigned,) if bits == 8 else (signed, unsigned)


def is_const(kind: str) -> bool:
    """Is it a pointer to const, which C does not write to?"""
    return kind.startswith("const ")


class Signature:
    """The declaration of one exported C function.

    Args:
        checks: raises the layer's errors.
        libraries: the layer's libraries, which have the function.
        function: its name in C.

    Raises:
        CaffeRuntimeError: the layer is not built. AttributeError: it declares no such function.
    """

    def __init__(self, checks: Checks, libraries: Libraries, function: str):
        self.checks, self.libraries, self.function = checks, libraries, function
        signatures = libraries.signatures()
        if function not in signatures:
            raise AttributeError(
                f"{checks.name} declares no C function {function!r}. There are: {', '.join(sorted(signatures))}"
            )
        declared = signatures[function]
        self.parameters = [tuple(p) for p in declared["parameters"]]
        self.returns_number = declared["returns"] == "int64_t"
        self.extents = declared.get("extents", {})
        self.may_be_null = set(declared.get("null", ()))
        self.alignments = declared.get("alignments", {})
        self.indices = declared.get("indices", {})
        self.elements = declared.get("elements", {})
        self.geometry = tuple(declared.get("geometry", ()))
        self.launched = declared.get("launched", {})
        # `int dtype` is the dtype of the `void *` arguments. `int weight_dtype` is that of `weight` and `weight_diff`,
        # which may differ from it.
        names = {n.removesuffix("_diff") for _, n in self.parameters}
        self.dtypes_of = {
            n: of
            for t, n in self.parameters
            if t == "int" and (of := n.removesuffix("_dtype")) in names - {n}
        }
        filled_in = {("int", "dtype"), ("void *", "stream"), *(("int", n) for n in self.dtypes_of)}
        self.passed = [parameter for parameter in self.parameters if parameter not in filled_in]
        if self.returns_number:
            self.passed.insert(0, ("Tensor", "like"))
        self.groups = ["dtype", *self.dtypes_of]

    def dtypes(self, kind: str, name: str) -> tuple[torch.dtype, ...]:
        """The dtypes of tensors for a pointer."""
        if name in self.elements:
            return tuple(getattr(torch, dtype) for dtype in self.elements[name])
        base = kind.removeprefix("const ").removesuffix(" *")
        if base == "void":
            return INDICES if name in self.indices else self.libraries.dtypes
        dtypes = pointed_dtypes(base)
        if not dtypes:
            raise self.checks.wrong(
                self.function, f"a C function of tensors and numbers: `{name}` is none", kind
            )
        return dtypes

    def group(self, name: str) -> str:
        own = self.indices.get(name) or name.removesuffix("_diff") + "_dtype"
        return own if own in self.dtypes_of else "dtype"

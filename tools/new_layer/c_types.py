"""C's and CUDA's types of a kernel's parameters, and what a C function takes for each."""

from __future__ import annotations

import re

# The C type of a number, and of a pointer's target, by the type of a kernel's parameter.
C_TYPES = {
    "bool": ("bool", "bool"),
    "float": ("float", "float"),
    "double": ("double", "double"),
    **dict.fromkeys(("int", "signed", "signed int", "int32_t"), ("int", "int32_t")),
    **dict.fromkeys(("unsigned", "unsigned int", "uint", "uint32_t"), ("uint32_t", "uint32_t")),
    **dict.fromkeys(("long", "long int", "long long", "int64_t", "ptrdiff_t"), ("int64_t", "int64_t")),
    **dict.fromkeys(("unsigned long", "unsigned long long", "size_t", "uint64_t"), ("uint64_t", "uint64_t")),
    **dict.fromkeys(("short", "int16_t"), ("int16_t", "int16_t")),
    **dict.fromkeys(("unsigned short", "ushort", "uint16_t"), ("uint16_t", "uint16_t")),
    **dict.fromkeys(("char", "signed char", "int8_t"), ("int8_t", "int8_t")),
    **dict.fromkeys(("unsigned char", "uint8_t", "uchar"), ("uint8_t", "uint8_t")),
}
# Types of elements that C does not have: a tensor's dtype, its elements in one of them, and what C's pointer points to.
# Launchers of templates are not compiled for half types.
COMPLEX = {
    **dict.fromkeys(("cuComplex", "cuFloatComplex", "cufftComplex"), ("complex64", 1, "float")),
    **dict.fromkeys(("cuDoubleComplex", "cufftDoubleComplex"), ("complex128", 1, "double")),
}
HALVES = {
    **dict.fromkeys(("__half", "half"), ("float16", 1, "uint16_t")),
    **dict.fromkeys(("__half2", "half2"), ("float16", 2, "uint16_t")),
    **dict.fromkeys(("__nv_bfloat16", "nv_bfloat16"), ("bfloat16", 1, "uint16_t")),
    **dict.fromkeys(("__nv_bfloat162", "nv_bfloat162"), ("bfloat16", 2, "uint16_t")),
}
# The states of include/curand_kernel.h. A tensor has their bytes.
STATE = re.compile(r"curandState\w*\Z")
STATE_BYTES = 64
# Torch's names of half types, which are not here.
OF_TORCH = re.compile(r"(at|c10)::(Half|BFloat16)\Z")
# The dtypes of the types that a launcher may choose from, in the order of its cases.
DTYPES = {
    "float": "float32",
    "double": "float64",
    **{name: dtype for name, (dtype, count, _) in HALVES.items() if count == 1},
    **{name: pointed.removesuffix("_t") for name, (_, pointed) in C_TYPES.items() if pointed[-2:] == "_t"},
    "bool": "bool",
}
# Types that are the same in C++. A pointer to another type needs a cast.
SAME = {
    "bool", "float", "double", "int", "int32_t", "int64_t", "int16_t", "int8_t", "uint8_t", "unsigned char",
}  # fmt: skip
# CUDA's vectors. For a pointer to them Python passes a tensor of their elements.
VECTORS = {
    f"{name}{size}": element
    for name, element in {
        "char": "char", "uchar": "uchar", "short": "short", "ushort": "short", "int": "int", "uint": "uint",
        "long": "long", "ulong": "unsigned long", "longlong": "long long", "ulonglong": "unsigned long long",
        "float": "float", "double": "double",
    }.items()
    for size in (1, 2, 3, 4)
}  # fmt: skip
# What is given by value in parts: the C type of a part, the number of parts, and the function that joins them.
MADE_OF = {
    **{name: (C_TYPES[element][0], int(name[-1]), f"make_{name}") for name, element in VECTORS.items()},
    **{
        name: ("double" if "Double" in name else "float", 2, f"make_{name.replace('cufft', 'cu')}")
        for name in COMPLEX
    },
    **dict.fromkeys(("__half2", "half2"), ("float", 2, "__floats2half2_rn")),
    **dict.fromkeys(("__nv_bfloat162", "nv_bfloat162"), ("float", 2, "__floats2bfloat162_rn")),
}


def alignment_of(kind: str) -> int:
    """The bytes to which CUDA aligns a vector of two or four; 1 for other types, whose tensors are aligned anyway."""
    if kind not in VECTORS or kind[-1] not in "24":
        return 1
    word = C_TYPES[VECTORS[kind]][1]
    bits = re.search(r"\d+", word) or {"float": [32]}.get(word, [64])
    return min(16, int(bits[0]) // 8 * int(kind[-1]))


def tidy_words(text: str) -> str:
    """A type without `const`, and integers of several words in one way: `int short unsigned` is an unsigned short."""
    found = [word for word in text.split() if word not in ("const", "typename")]
    if len(found) < 2 or not set(found) <= {"short", "int", "long", "signed", "unsigned", "char"}:
        return " ".join(found)
    size = next((word for word in ("char", "short", "long") if word in found), "int")
    sign = "unsigned" * ("unsigned" in found) or "signed" * (size == "char" and "signed" in found)
    return f"{sign} {size}".strip()

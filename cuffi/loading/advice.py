"""What to do about a compiler's error, where its own words do not say it: a line below its output."""

import re

# A pattern of g++'s or clang's words, and the next step.
_STEPS = (
    (
        r"storage size of .(?P<name>\w+). isn.t constant|variable.length array declaration|variable-sized object",
        "an array in shared memory has a constant size, or none: extern __shared__ float s[], and the launch gives it",
    ),
    (
        r"(assignment|increment|decrement) of read-only|read-only variable is not assignable|const.qualified type",
        "a pointer to const is only read: leave out const where the kernel writes",
    ),
    (
        r"(uint3|dim3). has no member|no member named '\w+' in '(uint3|dim3)'",
        "threadIdx, blockIdx, blockDim and gridDim have x, y and z, in small letters",
    ),
    (
        r"torch::(nn|optim|jit). has not been declared|no (member|type) named '(nn|optim|jit)' in namespace 'torch'",
        "torch's C++ front end is not in cuffi's headers: keep the module in Python, and pass its tensors",
    ),
    (
        r"fatal error: '?(?P<header>[^\s:']+)'?(: No such file or directory| file not found)",
        r"put \g<header> beside the file that includes it, or give its folder: include_dirs=[...] of an extension, "
        "or of load_inline, -I for cuffi judge and cuffi run",
    ),
    (
        r"(undeclared identifier .(?P<c>\w+)|(?P<g>\w+).? was not declared in this scope).*\n"
        r".*\bdef\(.*&\s*((?P=c)|(?P=g))\b",
        r"def() takes a function that is defined or declared above it: is \g<c>\g<g> spelt as where it is defined?",
    ),
)  # fmt: skip


def advice(output: str) -> str:
    """The steps for the errors in a compiler's output, each in a line of its own that begins with a newline."""
    # The line of source that a compiler shows below its error, too.
    lines = output.splitlines()
    errors = "\n".join(
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if "error" in line or "error" in before
    )
    found = [(re.search(pattern, errors), step) for pattern, step in _STEPS]
    return "".join(f"\nwhat to do: {match.expand(step)}" for match, step in found if match)

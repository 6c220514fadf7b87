"""Is this kernel right for every size? z3 is asked about two threads of it: `cuffi judge --prove`.

    reading.py      a file without macros, its functions and their trees, by tools/cuda
    types.py        the types of C++ that are followed
    values.py       what variables hold, arrays, accesses
    queries.py      z3: what is known, what follows, is there a counterexample
    arithmetic.py   C++'s operations on whole numbers
    thread.py       the generic thread: variables, conditions, accesses, barriers
    places.py       where values are; expressions.py, calls.py, statements.py and loops.py run the text
    groups.py       cooperative groups: the block and tiles
    declarations.py, constants.py   a thread's variables, and what is the same for all threads
    questions.py    races, bounds, barriers
    proof.py        a file's kernels, with what was assumed

What is not followed raises NotFollowed, and the kernel is not proved. It needs z3-solver, which is not installed with
the toolkit: `pip install 'cuffi[prove]'`.
"""

import importlib.util
from collections.abc import Sequence


def why_not(files: Sequence[str], jobs: int | None) -> str:
    """Why `--prove` is no use for these files, in words; "" if it is."""
    if jobs or any(file.endswith(".py") for file in files):
        return "--prove reads .cu files, without --jobs"
    if importlib.util.find_spec("z3") is None:
        return "--prove asks z3, which is not installed: pip install 'cuffi[prove]', or z3-solver"
    return ""

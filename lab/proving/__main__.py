"""Prove kernels, and count: python -m lab.proving [more.cu ...]

Without files: those that are made to fool the prover. Prints each kernel that is proved, or why it is not. With
z3-solver installed alone.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from cuffi.proving.proof import proofs

from . import fooling_kernels


def main(files: list[Path]) -> int:
    """Of the kernels that are made to fool it, a proved one is a failure."""
    counted: Counter[str] = Counter()
    for file in files:
        for one in proofs(file, is_searching=False):
            word = "proved" if one.is_proved else "not proved"
            counted[word] += 1
            print(
                f"{file.name}: {one.kernel}: {word}{': ' + one.reasons[0][0] if one.reasons else ''}",
                flush=True,
            )
    print(", ".join(f"{word} {count}" for word, count in counted.items()))
    return counted["proved"]


if __name__ == "__main__":
    if given := [Path(word) for word in sys.argv[1:]]:
        main(given)
        sys.exit(0)
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for number, text in enumerate(fooling_kernels()):
            made.append(Path(folder, f"fooling{number}.cu"))
            made[-1].write_text(text)
        sys.exit(1 if main(made) else 0)

"""The log of training in Caffe's form, glog's, so that BVLC's parse_log.py and plot_training_log.py read it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import datetime

from torch import Tensor


def formed(text: str, severity: str = "I") -> str:
    """`I1126 13:27:11.123456 12345 solver.cpp:1] text`. The source is Caffe's file, which some scripts look for."""
    return f"{severity}{datetime.now():%m%d %H:%M:%S.%f} {os.getpid():5d} solver.cpp:1] {text}"


def to_stderr(line: str) -> None:
    """Write a line of the log to stderr. If that goes to a file, a terminal shows the text, too."""
    print(line, file=sys.stderr, flush=True)
    if sys.stdout is not None and sys.stdout.isatty() and not sys.stderr.isatty():
        print(line.partition("] ")[2], flush=True)


def scores(kind: str, values: dict[str, Tensor], weights: dict[str, float]) -> Iterator[str]:
    """A line for each number of a net's outputs: `    Test net output #0: loss = 0.5 (* 2 = 1 loss)`."""
    number = 0
    for name, tensor in values.items():
        weight = weights.get(name, 0.0)
        for value in tensor.reshape(-1).tolist():
            part = f" (* {weight:g} = {weight * value:g} loss)" if weight else ""
            yield f"    {kind} net output #{number}: {name} = {value:g}{part}"
            number += 1

"""The process of a candidate: it calls ModelNew for inputs that lie in files, and leaves the results in files.

    python -m cuffi.judging.candidate candidate.py inputs results [main's arguments]     by cuffi.ext
    python -m cuffi.judging.candidate script.py -- arguments                             a script alone

The reference and the comparison are in another process (compare.py), which believes nothing of this one but the files.
"""

from __future__ import annotations

import os
import sys

os.environ.pop("LD_PRELOAD", None)  # it is loaded here; compilers need it not

import runpy
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cuffi.judging.defined import named

# Operations that make memory, show or move what is there. All others compute.
MAKES = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
MOVES = MAKES | {
    *("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "full", "full_like", "new_full"),
    *("new_ones", "scalar_tensor", "view", "_unsafe_view", "reshape", "_reshape_alias", "as_strided", "expand"),
    *("permute", "transpose", "t", "slice", "select", "unsqueeze", "squeeze", "alias"),
    *("detach", "split", "split_with_sizes", "unbind", "narrow", "unfold", "clone", "copy_"),
    *("_to_copy", "contiguous", "lift_fresh", "_local_scalar_dense", "fill_", "zero_", "set_", "equal"),
}  # fmt: skip
CALL = "--call"
IDLE = "CAFFE_JUDGE_IDLE"  # set in the run without kernels
MOST_BYTES = 1 << 28  # of what torch has computed in a call without kernels


class Watch(TorchDispatchMode):
    """What has torch itself computed? And what nobody has written is no number."""

    def __init__(self):
        super().__init__()
        self.computed: list[tuple[str, torch.Tensor]] = []
        self.bytes = 0

    def __torch_dispatch__(self, func, types, args: tuple = (), kwargs=None):
        made = func(*args, **(kwargs or {}))
        name = func._schema.name.rpartition("::")[2]
        if name in MAKES and isinstance(made, torch.Tensor):
            poison(made)
        elif name not in MOVES and IDLE in os.environ:
            for one in made if isinstance(made, (tuple, list)) else (made,):
                if isinstance(one, torch.Tensor) and self.bytes < MOST_BYTES:
                    self.bytes += one.nbytes
                    self.computed.append((name, plain(one)))
        return made


def poison(memory: torch.Tensor):
    """Fill it with what is no right result."""
    if memory.is_floating_point() or memory.is_complex():
        memory.fill_(float("nan"))
    elif memory.dtype != torch.bool:
        memory.fill_(torch.iinfo(memory.dtype).max)


def flat(value) -> list:
    if isinstance(value, dict):
        value = list(value.values())
    return [one for part in value for one in flat(part)] if isinstance(value, (list, tuple)) else [value]


def plain(value):
    """For a file: a tensor as it is, a number or a text, or the name of another type."""
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        return value.detach().cpu().contiguous().clone()
    return (
        value if type(value) in (bool, int, float, complex, str, type(None)) else f"a {type(value).__name__}"
    )


def call_all(file: Path, inputs: Path, results: Path):
    """Call ModelNew for each of the inputs."""
    found = runpy.run_path(str(file))
    start = torch.load(inputs / "start.pt", weights_only=False)
    torch.manual_seed(start["seed"])
    model = named(found, "ModelNew", file)(*start["arguments"])
    for number, optional in enumerate(start["optional"]):
        given = torch.load(inputs / f"{number}.pt", weights_only=False)
        torch.manual_seed(given["seed"])
        watch = Watch()
        try:
            with torch.no_grad(), watch:
                made = model(*given["inputs"])
        except Exception as error:
            if not optional:
                raise
            torch.save({"refused": str(error)[:300]}, results / f"{number}.pt")
            continue
        own = flat(made)
        kinds = {(one.shape, one.dtype) for one in own if isinstance(one, torch.Tensor)}
        computed = [(name, one) for name, one in watch.computed if (one.shape, one.dtype) in kinds]
        said = {"results": list(map(plain, own)), "inputs": [plain(one) for one in flat(given["inputs"])]}
        torch.save(said | {"computed": computed}, results / f"{number}.pt")


def main() -> int:
    file, *words = sys.argv[1:]
    if file == CALL:
        file, inputs, results = words
        sys.path[0] = str(Path(file).parent)
        call_all(Path(file), Path(inputs), Path(results))
        return 0
    given = [file, *words[1:]] if words[:1] == ["--"] else [__file__, CALL, file, *words]
    sys.argv = ["cuffi.ext", *given]
    runpy.run_module("cuffi.ext", run_name="__main__", alter_sys=True)  # it ends with the status
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""compare.py candidate.py reference.py: do ModelNew and Model give the same for the same inputs?

The words are KernelBench's: the reference has `Model`, `get_inputs()`, and `get_init_inputs()` if Model takes
arguments; the candidate has `ModelNew`. Both are made, and called, after the same seeds: for inputs of three seeds,
once more for the first, for inputs that are scaled, and for fewer of them, if Model takes these. Halves may differ by
1e-2, other floating-point numbers by 1e-4, relative and absolute; other types must be equal. The candidate runs in a
process of its own (candidate.py), which ends before this one computes what is right.
"""

from __future__ import annotations

import copy
import os
import pickle
import runpy
import sys
from pathlib import Path

import torch

from cuffi.judging.defined import named

TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 1e-2, torch.float32: 1e-4, torch.float64: 1e-4}
SEEDS = (1, 2, 3)
MODEL_SEED = 0


def flat(value) -> list:
    if isinstance(value, dict):
        value = list(value.values())
    return [one for part in value for one in flat(part)] if isinstance(value, (list, tuple)) else [value]


def difference(own, expected) -> str:
    """In words; "" if there is none. Types are compared, and not asked: a result may be of any class."""
    mine, its = flat(own), flat(expected)
    if len(mine) != len(its):
        return f"{len(mine)} results instead of {len(its)}"
    for number, (a, b) in enumerate(zip(mine, its, strict=True)):
        if told := _differs(a, b):
            return f"result {number}: {told}"[:300]
    return ""


def _differs(a, b) -> str:
    if isinstance(b, torch.Tensor) and not (type(a) is type(b) or type(a) is torch.Tensor):
        return f"a {type(a).__name__} instead of a tensor"
    if not isinstance(b, torch.Tensor):
        return "" if type(a) is type(b) and a == b else f"{_shown(a)} instead of {_shown(b)}"
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype} {tuple(a.shape)} instead of {b.dtype} {tuple(b.shape)}"
    within = TOLERANCE.get(b.dtype, 0)
    same = torch.isclose(a, b, rtol=within, atol=within, equal_nan=True)
    if same.all():
        return ""
    at = tuple((~same).nonzero()[0].tolist())
    count = int((~same).sum())
    return (
        f"{count} of {same.numel()} elements differ; {list(at)} is {a[at].item():g}"
        f" instead of {b[at].item():g}"
    )


def _shown(value) -> str:
    return (
        repr(value)
        if type(value) in (bool, int, float, complex, str, type(None))
        else f"a {type(value).__name__}"
    )


def _scaled(given: list, by: float) -> list:
    return [one * by if isinstance(one, torch.Tensor) and one.is_floating_point() else one for one in given]


def _fewer(given: list) -> list | None:
    """Inputs of another size: fewer along the first axis, if all tensors with elements have the same length there."""
    tensors = [one for one in given if isinstance(one, torch.Tensor) and one.dim()]
    lengths = {len(one) for one in tensors}
    if len(lengths) != 1 or min(lengths) < 2:
        return None
    keep = max(lengths) // 2 + 1 if max(lengths) > 2 else 1
    return [one[:keep].clone() if isinstance(one, torch.Tensor) and one.dim() else one for one in given]


class Reference:
    """The file of a reference, and the calls that are compared."""

    def __init__(self, file: Path):
        sys.path.insert(0, str(file.parent))
        self.file = file
        self.found = runpy.run_path(str(file))

    def arguments(self) -> list:
        torch.manual_seed(MODEL_SEED)
        return list(self.found.get("get_init_inputs", list)())

    def inputs(self, seed: int) -> list:
        torch.manual_seed(seed)
        return list(named(self.found, "get_inputs", self.file)())

    def model(self):
        arguments = self.arguments()
        torch.manual_seed(MODEL_SEED)
        return named(self.found, "Model", self.file)(*arguments)

    def calls(self) -> list[tuple[str, int, list, bool]]:
        """What is said of a call, its seed, its inputs, and whether a candidate may refuse them."""
        first = self.inputs(SEEDS[0])
        made = [(f"seed {seed}", seed, self.inputs(seed), False) for seed in SEEDS]
        made.append(("the second call", SEEDS[0], first, False))
        made.append(("inputs times -0.5", SEEDS[0], _scaled(first, -0.5), True))
        if (fewer := _fewer(first)) is not None:
            made.append(("fewer inputs", SEEDS[0], fewer, True))
        return made


def write_inputs(reference: Path, to: Path):
    """The inputs of each call, for the candidate."""
    known = Reference(reference)
    calls = known.calls()
    start = {
        "seed": MODEL_SEED,
        "arguments": known.arguments(),
        "optional": [optional for *_, optional in calls],
    }
    torch.save(start, to / "start.pt")
    for number, (_, seed, inputs, _) in enumerate(calls):
        torch.save({"seed": seed, "inputs": inputs}, to / f"{number}.pt")


def _expected(model, seed: int, inputs: list):
    torch.manual_seed(seed)
    with torch.no_grad():
        return flat(model(*inputs))


def _read(file: Path) -> dict:
    """What a candidate has left: no code of it runs here.

    Raises:
        OSError, ValueError: there is nothing, or something else.
    """
    try:
        found = torch.load(file, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise ValueError(f"its results cannot be read: {error}"[:200]) from None
    if not isinstance(found, dict):
        raise ValueError("its results are of another kind")
    return found


def _told(said: dict, expected: list, given: list) -> list[tuple[str, str]]:
    """What is wrong with one call: a class and a text."""
    told = []
    if text := difference(said.get("results"), expected):
        told.append(("different", text))
    elif any(
        changed := [difference(a, b) for a, b in zip(said.get("inputs", []), flat(given), strict=False)]
    ):
        at = next(number for number, text in enumerate(changed) if text)
        told.append(
            ("different", f"it changes input {at}, and Model does not: {changed[at].partition(': ')[2]}")
        )
    return told


def compared(reference: Path, results: Path, idle: Path | None = None) -> list[tuple[str, str]]:
    """What is wrong with a candidate's results, and the drift of both against double.

    Args:
        idle: its results when no kernel ran. If they are right, too, no kernel has computed them.
    """
    known = Reference(reference)
    model, drift, found = known.model(), "", dict[str, str]()
    without: list[str] = []  # who is right without a kernel, for each seed
    firsts: list[list] = []
    for number, (name, seed, inputs, optional) in enumerate(known.calls()):
        kept = copy.deepcopy(inputs)
        try:
            expected = _expected(model, seed, inputs)
        except Exception:
            if not optional:
                raise
            continue  # Model does not take them
        try:
            said = _read(results / f"{number}.pt")
        except FileNotFoundError:
            return [("early", "ended before its results were compared")]
        except ValueError as error:
            return [("different", str(error))]
        if optional and "refused" in said:
            continue
        if number < len(SEEDS):
            firsts.append(expected)
            without.append(_right_one(idle / f"{number}.pt", expected) if idle else "")
        for kind, text in _told(said, expected, inputs):
            found.setdefault(kind, f"{name}: {text}" if number else text)
        if "different" in found:
            return list(found.items())
        drift = drift or _drift(known, seed, kept, said["results"], expected)
    if all(without) and difference(firsts[0], firsts[1]):  # a constant is right without anybody
        found["not-the-kernel"] = without[0]
    return [*found.items(), *([("drift", drift)] if drift else [])]


def _right_one(file: Path, expected: list) -> str:
    """Who has computed what is expected, though no kernel has run; "" if nobody has."""
    try:
        said = _read(file)
        for number, one in enumerate(expected):
            for name, computed in said["computed"]:
                if isinstance(one, torch.Tensor) and not difference(computed, one):
                    return f"torch's own {name} computes result {number}"
        return "" if difference(said["results"], expected) else "its results are right if no kernel runs, too"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _drift(known: Reference, seed: int, inputs: list, own: list, expected: list) -> str:
    """How far both are from the same in double, as text; "" if Model has no double."""
    try:
        wide = [
            one.double() if isinstance(one, torch.Tensor) and one.is_floating_point() else one
            for one in inputs
        ]
        exact = _expected(known.model().double(), seed, wide)
        farthest = [
            max(
                (float((a.double() - b).abs().max()) for a, b in zip(one, exact, strict=True) if b.numel()),
                default=0.0,
            )
            for one in (own, expected)
        ]
    except Exception:
        return ""
    return f"{farthest[0]:.3g} of ModelNew, {farthest[1]:.3g} of Model, from Model in double"


def say(told: list[tuple[str, str]]) -> int:
    """Print it in lines of the judge's own."""
    mark = os.environ["CAFFE_JUDGE"]
    for kind, text in told:
        print(f"JUDGE {mark} {kind}: {text}", file=sys.stderr)
    wrong = any(kind != "drift" for kind, _ in told)
    print(f"JUDGE {mark} compared", file=sys.stderr)
    return int(wrong)


def main() -> int:
    if sys.argv[1] == "--inputs":
        write_inputs(*map(Path, sys.argv[2:4]))
        return 0
    if sys.argv[1] == "--compare":
        return say(compared(*map(Path, sys.argv[2:])))
    from cuffi.judging import kept
    from cuffi.judging.limits import Limits
    from cuffi.judging.python import Script

    class Here(Script):
        """Its reference runs in this process."""

        def write_inputs(self, to: Path, limits: Limits):
            write_inputs(reference, to)

        def compared(self, results: Path, limits: Limits, idle: Path | None = None) -> list[tuple[str, str]]:
            return compared(reference, results, idle)

    candidate, reference = (Path(word).resolve() for word in sys.argv[1:3])
    with kept.of_a_run() as place:
        script = Here([candidate], [], [], reference)
        ran = script.run("plain", Path(place), Limits(300))
        found = script.findings(ran, 300) or script.result(ran)
    # Whether a kernel has computed it is for the judge to say, which sees the kernels run.
    kinds = {"different-result": "different"}
    return say([(kinds.get(one.kind, one.kind), one.text) for one in found if one.kind != "not-the-kernel"])


if __name__ == "__main__":
    sys.exit(main())

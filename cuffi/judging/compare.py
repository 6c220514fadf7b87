"""compare.py candidate.py reference.py: do ModelNew and Model give the same for the same inputs?

The words are KernelBench's: the reference has `Model`, `get_inputs()`, and `get_init_inputs()` if Model takes
arguments; the candidate has `ModelNew`. Both are made, and get their inputs, after the same seed. Halves may differ by
1e-2, other floating-point numbers by 1e-4, relative and absolute; other types must be equal.
"""

import os
import runpy
import sys

import torch

TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 1e-2, torch.float32: 1e-4, torch.float64: 1e-4}


def flat(value) -> list:
    if isinstance(value, dict):
        value = list(value.values())
    return [one for part in value for one in flat(part)] if isinstance(value, (list, tuple)) else [value]


def difference(own, expected) -> str:
    """In words; "" if there is none."""
    mine, its = flat(own), flat(expected)
    if len(mine) != len(its):
        return f"{len(mine)} results instead of {len(its)}"
    for number, (a, b) in enumerate(zip(mine, its, strict=True)):
        if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
            if a != b:
                return f"result {number}: {a!r} instead of {b!r}"[:300]
        elif a.shape != b.shape or a.dtype != b.dtype:
            return f"result {number}: {a.dtype} {tuple(a.shape)} instead of {b.dtype} {tuple(b.shape)}"
        else:
            within = TOLERANCE.get(b.dtype, 0)
            same = torch.isclose(a, b, rtol=within, atol=within, equal_nan=True)
            if not same.all():
                at = tuple((~same).nonzero()[0].tolist())
                count = int((~same).sum())
                return (
                    f"result {number}: {count} of {same.numel()} elements differ; {list(at)} is {a[at].item():g}"
                    f" instead of {b[at].item():g}"
                )
    return ""


def main() -> int:
    mark = os.environ["CAFFE_JUDGE"]
    candidate, reference = (runpy.run_path(path) for path in sys.argv[1:3])
    results = []
    for found, name in ((reference, "Model"), (candidate, "ModelNew")):
        torch.manual_seed(0)
        model = found[name](*reference.get("get_init_inputs", list)())
        torch.manual_seed(1)
        with torch.no_grad():
            results.append(model(*reference["get_inputs"]()))
    if told := difference(results[1], results[0]):
        print(f"JUDGE {mark} different: {told}", file=sys.stderr)
    print(f"JUDGE {mark} compared", file=sys.stderr)  # a candidate may end the process before
    return bool(told)


if __name__ == "__main__":
    sys.exit(main())

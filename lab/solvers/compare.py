"""Compare cuffi/nets/solver with a fork's own solvers, unedited: python lab/solvers/compare.py /path/to/caffe

The fork's src/caffe/solvers/*.cpp are compiled against the stand-in for Caffe in this folder. Both sides get the same
parameters and gradients in double, 100 updates with iter_size 2, clipping, multipliers and a rate that drops. The
largest relative difference of any parameter is printed for each type, policy and regularization.
"""

import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from cuffi.nets.solver.optimizer import CaffeOptimizer, CaffeSchedule  # noqa: E402
from cuffi.nets.solver.solver_prototxt import read_settings  # noqa: E402
from cuffi.nets.solver.updates import RULES  # noqa: E402

SIZES, MULTIPLIERS = (7, 5, 3), ((1.0, 1.0), (2.0, 0.0), (0.5, 3.0))
STEPS = 100
POLICIES = {
    "step": 'lr_policy: "step" gamma: 0.1 stepsize: 40',
    "multistep": 'lr_policy: "multistep" gamma: 0.5 stepvalue: 30 stepvalue: 31 stepvalue: 80',
    "inv": 'lr_policy: "inv" gamma: 0.01 power: 0.75',
    "exp": 'lr_policy: "exp" gamma: 0.97',
    "poly": 'lr_policy: "poly" power: 0.9 max_iter: 100',
    "sigmoid": 'lr_policy: "sigmoid" gamma: 0.05 stepsize: 50',
    "fixed": 'lr_policy: "fixed"',
}
FLOATS = (
    "base_lr",
    "gamma",
    "power",
    "momentum",
    "weight_decay",
    "clip_gradients",
    "delta",
    "momentum2",
    "rms_decay",
)


def compiled(caffe: Path, folder: Path) -> Path:
    """The program, of the fork's solvers and compare.cpp."""
    program = folder / "compare"
    solvers = [str(caffe / "src/caffe/solvers" / f"{name.lower()}_solver.cpp") for name in RULES]
    command = [*os.environ.get("CXX", "g++").split(), "-std=c++17", "-O1", "-DCPU_ONLY", "-w", f"-I{HERE}"]
    command += [f"-I{caffe / 'include'}", str(HERE / "compare.cpp"), *solvers, "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def theirs(program: Path, settings, start, gradients) -> torch.Tensor:
    """All parameters after each update, by the fork's solver."""
    s = settings.s
    words = [settings.type, s.lr_policy, s.regularization_type, *(repr(getattr(s, name)) for name in FLOATS)]
    words += [s.stepsize, s.max_iter, s.iter_size, len(s.stepvalue), *s.stepvalue, len(start)]
    for values, (lr, decay) in zip(start, MULTIPLIERS, strict=True):
        words += [len(values), lr, decay, *map(repr, values.tolist())]
    words += [len(gradients), *(repr(g) for step in gradients for one in step for g in one.tolist())]
    done = subprocess.run(
        [program], input=" ".join(map(str, words)), capture_output=True, text=True, check=True
    )
    return torch.tensor([float(word) for word in done.stdout.split()], dtype=torch.double).view(
        len(gradients), -1
    )


def ours(settings, start, gradients) -> torch.Tensor:
    """The same by CaffeOptimizer."""
    s, params = settings.s, [torch.nn.Parameter(values.clone()) for values in start]
    groups = [
        {"params": [p], "lr": s.base_lr * lr, "lr_mult": lr, "weight_decay": s.weight_decay * decay}
        for p, (lr, decay) in zip(params, MULTIPLIERS, strict=True)
    ]
    optimizer = CaffeOptimizer(settings, groups)
    schedule, rows = CaffeSchedule(optimizer), []
    for step in gradients:
        for p, g in zip(params, step, strict=True):
            p.grad = g.clone()
        optimizer.step()
        schedule.step()
        rows.append(torch.cat([p.detach().clone() for p in params]))
    return torch.stack(rows)


def main() -> int:
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(sys.argv[1]).resolve(), Path(folder))
        for kind, policy, regularization in itertools.product(RULES, POLICIES, ("L1", "L2")):
            torch.manual_seed(1)
            start = [torch.randn(n, dtype=torch.double) for n in SIZES]
            gradients = [[torch.randn(n, dtype=torch.double) * 2 for n in SIZES] for _ in range(STEPS)]
            momentum = "" if kind in ("AdaGrad", "RMSProp") else "momentum: 0.9"
            solver = Path(folder) / "solver.prototxt"
            solver.write_text(
                f'type: "{kind}" base_lr: 0.05 {momentum} weight_decay: 0.01 iter_size: 2 clip_gradients: 7.5 '
                f'regularization_type: "{regularization}" {POLICIES[policy]}'
            )
            settings = read_settings(solver)
            expected = theirs(program, settings, start, gradients)
            got = ours(settings, start, gradients)
            error = ((got - expected).abs() / expected.abs().clamp(min=1e-6)).max().item()
            worst = max(worst, error)
            print(f"{kind:9} {policy:10} {regularization}  {error:.1e}")
    print(f"largest relative difference: {worst:.1e}")
    return worst > 1e-6


if __name__ == "__main__":
    sys.exit(main())

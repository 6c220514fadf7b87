"""Compare thousands of random kernels of all kinds with the simulator, and look for false alarms, in many processes.

    python -m lab.launches.many [--workers 15] [--seconds 200] [--seed 1000] [--kernels 5000]

Each task is one source of some kernels: phases, strides, lanes, or the race finder on the first and the last. Every
third source runs on fibres, too. Tasks begin until the time or the number of kernels is over; those that run are waited
for. Prints each kernel that differs, a line of totals for each kind, and one for all.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import count

from . import lanes, phases, races, strides
from .simulated import Outcome

# A kind, with how many sources of it stand in a row of tasks, and the kernels of one.
KINDS = {"phases": (5, 16), "strides": (3, 16), "lanes": (4, 16), "races": (2, 12)}


def task(kind: str, seed: int) -> Outcome:
    outcome = Outcome()
    size = KINDS[kind][1]
    try:
        if kind == "races":
            races.compare(size // 2, seed, outcome)
        else:
            part = {"phases": phases, "strides": strides, "lanes": lanes}[kind]
            part.compare(size, seed, outcome, seed % 3 == 0)
    except Exception:  # one kernel that does not compile must not hide the others
        outcome.wrong.append(f"{kind} {seed}: {traceback.format_exc()[-3000:]}")
    outcome.wrong = [f"{kind} {seed}: {text}" for text in outcome.wrong]
    return outcome


def tasks(seed: int):
    """Kinds and seeds, without end."""
    for row in count():
        for kind, (many, _) in KINDS.items():
            for one in range(many):
                yield kind, seed + row * many + one


def run(workers: int, seconds: float, seed: int, kernels: int) -> dict[str, Outcome]:
    found = {kind: Outcome() for kind in KINDS}
    end, waiting, given = time.monotonic() + seconds, tasks(seed), 0
    running = {}
    with ProcessPoolExecutor(workers) as pool:
        while True:
            while len(running) < workers and time.monotonic() < end and given < kernels:
                kind, one = next(waiting)
                running[pool.submit(task, kind, one)] = kind
                given += KINDS[kind][1]
            if not running:
                return found
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                total, part = found[running.pop(done)], done.result()
                print(*part.wrong, sep="\n", end="\n" if part.wrong else "", flush=True)
                total.kernels += part.kernels
                total.calls += part.calls
                total.modes += part.modes
                total.races += part.races
                total.wrong += part.wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="lab.launches.many", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--kernels", type=int, default=5000)
    given = parser.parse_args()
    found = run(given.workers, given.seconds, given.seed, given.kernels)
    for kind, outcome in found.items():
        modes = ", ".join(f"{many} {mode}" for mode, many in sorted(outcome.modes.items()))
        print(
            f"{kind}: {outcome.kernels} kernels ({modes}), {outcome.calls} calls, {len(outcome.wrong)} differ"
        )
    each = [(o.kernels, o.calls, len(o.races), len(o.wrong)) for o in found.values()]
    of_all = [sum(values) for values in zip(*each, strict=True)]
    print("{} kernels, {} calls, {} with a race, {} differ".format(*of_all))
    return bool(of_all[3])


if __name__ == "__main__":
    sys.exit(main())

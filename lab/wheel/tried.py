"""Try one wheel under several Pythons and several versions of torch; print a table.

    python -m lab.wheel.tried cuffi-*.whl python3.10=2.5.1 python3.13=2.9.1 /opt/python3.14/bin/python3=2.15.0

Each pair is an interpreter and the torch to install for it from the registry, which takes some gigabytes; `python3.12=`
takes the newest. A virtual environment is made for each pair, one after the other, and removed. In it each layer runs
the first input of each of its cases, forward and backward, on the processor and on a GPU if there is one, against its
reference in double.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

TRIAL = Path(__file__).parent / "trials" / "each_layer.py"


def tried(wheel: Path, python: str, torch: str, work: Path) -> list[str]:
    """A row of the table: Python, torch, how many layers, how many cases, where; or what went wrong."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        steps = (
            [python, "-m", "venv", folder],
            [f"{folder}/bin/python", "-m", "pip", "install", "-q", "--no-cache-dir",
             f"torch=={torch}" if torch else "torch", str(wheel)],
            [f"{folder}/bin/python", str(TRIAL)],
        )  # fmt: skip
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, cwd=folder)
            if done.returncode:
                last = (done.stderr.strip() or done.stdout.strip()).splitlines()
                return [python, torch, f"failed: {last[-1] if last else step[:3]}"]
        return next(line.split("|")[1:] for line in done.stdout.splitlines() if line.startswith("ROW|"))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument("pairs", nargs="+", metavar="PYTHON=TORCH")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()), help="has 10 GB free")
    arguments = parser.parse_args()
    wheel = arguments.wheel.resolve()
    print(f"{wheel.name}, SHA-256 {hashlib.sha256(wheel.read_bytes()).hexdigest()[:16]}\n")
    print("| Python | torch | layers | cases | ran on |\n|---|---|---|---|---|", flush=True)
    failed = False
    for pair in arguments.pairs:
        python, _, torch = pair.partition("=")
        row = tried(wheel, python, torch, arguments.work)
        failed |= len(row) < 5
        print(f"| {' | '.join(row)} |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

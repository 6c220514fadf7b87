"""How long each folder of tests takes: python test.py compares with tests/seconds.txt, and says which folder grew."""

from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FILE = ROOT / "tests" / "seconds.txt"
# A folder has grown by so much of its time, and by so much of the suite's: a few tests vary by more than a tenth.
OF_ITSELF, OF_ALL = 0.1, 0.01


def read(text: str) -> dict[str, float]:
    rows = (line.split() for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {folder: float(seconds) for folder, seconds in rows}


def grown(took: dict[str, float], before: dict[str, float], file=FILE, of_itself=OF_ITSELF) -> list[str]:
    """A line for each folder that takes a larger share of the whole. Shares do not depend on the machine."""
    total, total_before = sum(took.values()), sum(before.values())
    lines = []
    for folder, seconds in sorted(took.items()):
        expected = before.get(folder, 0) * total / total_before if total_before else seconds
        if seconds > (1 + of_itself) * expected and seconds - expected > OF_ALL * total:
            lines.append(f"{folder} took {seconds:.0f} s, {expected:.0f} s by {file.relative_to(ROOT)}")
    return lines


class Seconds:
    """A plugin of pytest. `--seconds` writes what the folders took to tests/seconds.txt."""

    def __init__(self, writes: bool):
        self.writes = writes
        self.took: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report):
        parts = Path(report.nodeid.partition("::")[0]).parts
        folder = "/".join(parts[1:3] if len(parts) > 3 else parts[1:-1]) or "."
        self.took[folder] += report.duration

    def pytest_terminal_summary(self, terminalreporter):
        if self.writes:
            head, _, before = FILE.read_text().partition("\n\n")
            rows = sorted((read(before) | self.took).items())  # a folder of which no test ran keeps its line
            FILE.write_text(
                f"{head}\n\n" + "".join(f"{folder:32}{seconds:.1f}\n" for folder, seconds in rows)
            )
            return
        for line in grown(self.took, read(FILE.read_text())):
            terminalreporter.write_line(line)

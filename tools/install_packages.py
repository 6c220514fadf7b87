"""Install what requirements.txt names and this Python lacks, into this Python. Says what to do where it may not."""

import importlib.metadata
import re
import subprocess
import sys
import sysconfig
from pathlib import Path


def missing(requirements: Path) -> list[str]:
    lines = (line.split("#")[0].strip() for line in requirements.read_text().splitlines())
    return [line for line in lines if line and not installed(re.split(r"[<>=!~ ]", line)[0])]


def installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def main() -> int:
    wanted = missing(Path(sys.argv[1]))
    if not wanted:
        return 0
    managed = (
        sys.prefix == sys.base_prefix and Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").exists()
    )
    if managed:
        print(f"Missing Python packages: {', '.join(wanted)}")
        print("This Python belongs to the operating system. Make one of your own, then make again:")
        print("    python3 -m venv .venv && . .venv/bin/activate && make")
        return 1
    print(f"  PIP   {' '.join(wanted)}")
    return subprocess.run([sys.executable, "-m", "pip", "install", "-q", *wanted]).returncode


if __name__ == "__main__":
    sys.exit(main())

"""A copy of the checkout with a third backend, HIP, for AMD's GPUs.

    python -m lab.hip FOLDER && make -C FOLDER HIPCC=hipcc HIP_ARCH=gfx90a

The copy gets the files of git, the rules in mk/, the headers in include/ and the edits of hip.patch. No AMD GPU has run
any of it (lab/hip/README.md).
"""

import argparse
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def with_hip(folder: Path) -> None:
    """Copy the checkout's files into a folder that is not there yet, and add the backend."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():  # it may be removed, and not committed yet
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for name in ("mk", "include"):
        shutil.copytree(HERE / name, folder / name, dirs_exist_ok=True)
    subprocess.run(["patch", "--quiet", "--strip=1", f"--input={HERE / 'hip.patch'}"], cwd=folder, check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="lab.hip", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.folder.exists():
        parser.error(f"{given.folder} is there already")
    with_hip(given.folder)

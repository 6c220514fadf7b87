"""Run the whole suite: `python test.py [pytest options]`, for instance `python test.py -x -k sigmoid-vector`.

LAYERS_DIR=/my/layers tests the layers of another folder, and those alone: the engine's tests are the
toolkit's own.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def main() -> int:
    folder = Path(os.environ.get("LAYERS_DIR") or ROOT / "layers").resolve()
    if not any(folder.glob("*/_*.abi3.so")):
        print(f"Nothing is built in {folder}: type `make` first, in {ROOT}.", file=sys.stderr)
        return 1
    import pytest  # after the line above: without `make` it may be missing too

    os.environ["LAYERS_DIR"] = str(folder)
    os.chdir(ROOT)  # where pyproject.toml says what to run
    return pytest.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())

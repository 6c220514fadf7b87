"""Run the usual checkers on a wheel of the toolkit.

    python -m pip install twine abi3audit auditwheel kernel-abi-check
    python -m lab.wheel.check cuffi-*.whl

twine: the description can be displayed. abi3audit and Hugging Face's kernel-abi-check: the libraries use only the
stable ABI of the wheel's tag. auditwheel: which Linux the libraries need, and that they do not need torch's libraries.
"""

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

FOREIGN = re.compile(r"lib(torch|c10|cudart|cublas|python)[\w.-]*\.so[\w.]*")


def run(*command: str) -> tuple[int, str]:
    if importlib.util.find_spec(command[0]) is None:
        return 1, f"it is not installed: python -m pip install {command[0]}"
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def twine(wheel: Path) -> str:
    """Why it is refused; "" if it is not. The others are alike."""
    status, text = run("twine", "check", "--strict", str(wheel))
    return text if status else ""


def abi3audit(wheel: Path) -> str:
    status, text = run("abi3audit", "--strict", "--verbose", str(wheel))
    good = re.search(
        r"[1-9]\d* extensions scanned; 0 ABI version mismatches and 0 ABI violations found", text
    )
    return "" if good and not status else text


def auditwheel(wheel: Path) -> str:
    status, text = run("auditwheel", "show", str(wheel))
    found = re.search(r'platform tag: "(manylinux\w+|musllinux\w+)"', text)
    if status or not found:
        return text
    print(f"            needs {found[1]}, or newer")
    return f"a library of others is needed: {foreign[0]}" if (foreign := FOREIGN.search(text)) else ""


def kernel_abi_check(wheel: Path) -> str:
    try:
        from kernel_abi_check import ObjectFile
    except ImportError:
        return "it is not installed"
    version = re.search(r"-cp3(\d+)-abi3-", wheel.name)
    if not version:
        return "the wheel's name has no tag of the stable ABI"
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(wheel).extractall(folder)
        libraries = sorted(Path(folder).rglob("*.so"))
        if not libraries:
            return "no library is in it"
        wrong = {p: ObjectFile(str(p)).check_python_abi(f"3.{version[1]}") for p in libraries}
    return "; ".join(f"{p.parent.name}/{p.name}: {found}" for p, found in wrong.items() if found)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", nargs="+", type=Path)
    failed = 0
    for wheel in parser.parse_args(arguments).wheel:
        print(wheel.name)
        for check in (twine, abi3audit, auditwheel, kernel_abi_check):
            wrong = check(wheel)
            failed += bool(wrong)
            print(f"  {'FAIL' if wrong else 'ok':5} {check.__name__}{': ' + wrong if wrong else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""The distribution cuffi-nets: the pure part of the package `cuffi`, and the messages' descriptor.

In a checkout the files are those of ../../cuffi that tools/make/distributions.py lists. In an sdist they are in src/.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
IS_SDIST = (HERE / "src").is_dir()
NAME = "cuffi-nets"
if sys.version_info < (3, 10):  # noqa: UP036
    found = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    raise SystemExit(f"{NAME}: this is {found}, and 3.10 or newer is needed: python3.10 -m pip install ...")


def staged() -> Path:
    """A folder of this project with a copy of the files of the checkout; removed when this process ends."""
    sys.path.insert(0, str(ROOT))
    from tools.make.distributions import IGNORED, MESSAGES, NETS

    (HERE / "build").mkdir(exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="files-", dir=HERE / "build"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    target = place / "src" / "cuffi"
    target.mkdir(parents=True)
    for name in NETS:
        if (ROOT / "cuffi" / name).is_dir():
            shutil.copytree(ROOT / "cuffi" / name, target / name, ignore=shutil.ignore_patterns(*IGNORED))
        else:
            shutil.copy2(ROOT / "cuffi" / name, target / name)
    write_messages(target / MESSAGES, place)
    return place / "src"


def copy_license() -> None:
    """The checkout's licence beside this file: setuptools takes none from elsewhere. git ignores it."""
    text = (ROOT / "LICENSE").read_bytes()
    if not (HERE / "LICENSE").exists() or (HERE / "LICENSE").read_bytes() != text:
        (HERE / "LICENSE").write_bytes(text)


def write_messages(descriptor: Path, place: Path) -> None:
    """Write the descriptor, with protoc, whether make has written one or not: that one may be older than the protos."""
    command = [sys.executable, "-m", "cuffi.caffe_layers.make.proto"]
    command += ["--layer-dir", str(ROOT / "cuffi" / "nets" / "net"), "--descriptor", str(descriptor)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    done = subprocess.run(
        [*command, "--include-dir", str(place / "include")],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise SystemExit(
            f"cuffi-nets: the messages of Caffe were not made: {last}. It needs: pip install grpcio-tools"
        )


class Sdist(sdist):
    """Puts the files into src/, where an sdist has them."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        own = [name for name in files if not name.replace("\\", "/").startswith("build/")]
        super().make_release_tree(base_dir, own)
        shutil.copytree(HERE / SOURCE, Path(base_dir, "src"), dirs_exist_ok=True)


os.chdir(HERE)
if not IS_SDIST:
    copy_license()
SOURCE = Path("src") if IS_SDIST else staged().relative_to(HERE)
version = {}
exec((HERE / SOURCE / "cuffi" / "version.py").read_text(encoding="utf-8"), version)
(HERE / "build").mkdir(exist_ok=True)
MADE = Path(tempfile.mkdtemp(prefix="pip-", dir=HERE / "build"))
atexit.register(shutil.rmtree, MADE, ignore_errors=True)
setup(
    version=version["VERSION"],
    cmdclass={"sdist": Sdist},
    packages=find_packages(SOURCE.as_posix()),
    package_dir={"": SOURCE.as_posix()},
    package_data={"": ["*"]},
    exclude_package_data={"": ["*.pyc"]},
    include_package_data=False,
    options={"build": {"build_base": str(MADE)}, "egg_info": {"egg_base": str(MADE)}},
)

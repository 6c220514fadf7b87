"""The distribution cuffi: `make`, and then the kernels' part of the package `cuffi`, with libraries and make rules.

The folder layers/ becomes cuffi/layers/, and the Makefile, the headers and the tools cuffi/_toolkit/. The other files
of the package are those of the distribution cuffi-nets (tools/make/distributions.py), which this one requires in the
same version: from a checkout the project packaging/nets, from an sdist a release. An editable install has all files.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # pip runs this file without its folder on the path

NAME = "cuffi"
if sys.version_info < (3, 10):  # noqa: UP036
    found = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    raise SystemExit(f"{NAME}: this is {found}, and 3.10 or newer is needed: python3.10 -m pip install ...")
if "t" in sys.abiflags:
    raise SystemExit(
        f"{NAME}: free-threaded Python cannot load libraries of the stable ABI: "
        f"install into python{sys.version_info[0]}.{sys.version_info[1]}, not its t variant"
    )

if sys.platform != "linux":
    raise SystemExit(
        f"{NAME}: the kernels are built on Linux, this is {sys.platform}. Nets, dnn and pycaffe: pip install cuffi-nets"
    )

from tools.make import metadata  # noqa: E402
from tools.make.backends import BACKENDS  # noqa: E402
from tools.make.distributions import is_of_nets  # noqa: E402
from tools.make.requirements import file_of, lines_of  # noqa: E402
from tools.make.settings import from_environment  # noqa: E402

# The oldest CPython whose stable ABI the libraries use (build_ffi.py).
ABI = "cp310"
# The files with which an installed package builds layers.
RULES = ("Makefile", "mk", "build_ffi.py", "requirements", "include", "src", "tools")
# There the tools import the package that is around them.
SHIM = '''"""cuffi, for the tools beside this folder: the package around them."""

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parents[2])]
__file__ = str(Path(__path__[0], "__init__.py"))
exec(compile(Path(__file__).read_bytes(), __file__, "exec"))
'''
NETS = ROOT / "packaging" / "nets"
IS_SDIST = (ROOT / "PKG-INFO").exists()
# packaging/backend.py sets it.
EDITABLE = os.environ.get("CUFFI_EDITABLE") == "1"
NOT_INSTALLED = shutil.ignore_patterns("__pycache__", "*.pyc", "*.partial", ".*")


class Build(build_py):
    """build_py for libraries that make has built in place."""

    def run(self) -> None:
        began = time.time()
        make = ["make", "-C", str(ROOT), f"-j{os.cpu_count() or 2}", f"PYTHON={sys.executable}", "libraries"]
        # The user's environment may set LAYERS_DIR and BUILD.
        make += ["LAYERS_DIR=layers", "BUILD=build"]
        if subprocess.run(make).returncode:
            raise SystemExit(f"{NAME}: make failed; its output is above")
        print(f"{NAME}: make took {time.time() - began:.0f} s", flush=True)
        super().run()
        if not self.editable_mode:
            self._add_rules(Path(self.build_lib, NAME, "_toolkit"))
            self._add_stubs(Path(self.build_lib, NAME))

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Leaves out the files of cuffi-nets."""
        found = super().find_package_modules(package, package_dir)
        return found if EDITABLE or package != NAME else [m for m in found if not is_of_nets(f"{m[1]}.py")]

    def check_package(self, package: str, package_dir: str) -> str | None:
        """The folder cuffi/ has its __init__.py from cuffi-nets."""
        return None if package == NAME else super().check_package(package, package_dir)

    def find_data_files(self, package: str, src_dir: str) -> list[str]:
        """Leaves out libraries of an earlier build, of a backend or a layer that this build did not make."""
        if package == NAME and not EDITABLE:
            return []
        layer, wanted = package.rpartition(".")[2], os.environ.get("LAYERS", "").split()
        made, _ = from_environment([])
        kept = made.backends if not wanted or layer in wanted else []
        left_out = [f"_{name}." for name in BACKENDS if name not in kept]
        found = super().find_data_files(package, src_dir)
        return [f for f in found if not Path(f).name.startswith(tuple(left_out))]

    def _add_stubs(self, target: Path) -> None:
        """For type checkers, which do not run the finder that makes cuffi.foo of a folder of layers."""
        for package in packages():
            above, _, layer = package.rpartition(".")
            if above.endswith(".layers"):
                (target / f"{layer}.pyi").write_text(f"from {package} import *\n")

    def _add_rules(self, target: Path) -> None:
        shutil.rmtree(target, ignore_errors=True)
        for part in RULES:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, target / part, ignore=NOT_INSTALLED)
            elif (ROOT / part).exists():
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / part, target / part)
        (target / "VERSION").write_text(VERSION + "\n")
        (target / "COMMIT").write_text(metadata.commit()() + "\n")
        (target / NAME).mkdir()
        (target / NAME / "__init__.py").write_text(SHIM)


class Binary(Distribution):
    """Has libraries, though setuptools compiles none: the wheel is for this platform."""

    def has_ext_modules(self) -> bool:
        return True


def packages() -> list[str]:
    """The folders below cuffi/ with Python in them, and the layers of layers/, as packages of cuffi."""
    own = {f.parent.relative_to(ROOT) for f in (ROOT / NAME).rglob("*.py")}
    own = {folder for folder in own if EDITABLE or not is_of_nets("/".join(folder.parts[1:2]))}
    layers = {Path(NAME, f.parent.relative_to(ROOT)) for f in (ROOT / "layers").rglob("*/*.py")}
    return sorted(".".join(folder.parts) for folder in own | layers if "build" not in folder.parts)


def required() -> list[str]:
    """What pip installs, too: cuffi-nets of this version, the checkout's own where this is a checkout."""
    kernels = [*lines_of(file_of("run")), *lines_of(file_of("build"))]
    if EDITABLE:
        return kernels
    return [f"cuffi-nets=={VERSION}" if IS_SDIST else f"cuffi-nets @ {NETS.as_uri()}", *kernels]


def version() -> str:
    read: dict = {}
    exec((ROOT / NAME / "version.py").read_text(encoding="utf-8"), read)
    return read["VERSION"]


VERSION = version()
# setuptools' own build folder is removed: a file that stays there would go into the next wheel.
(ROOT / "build").mkdir(exist_ok=True)
MADE = Path(tempfile.mkdtemp(prefix="pip-", dir=ROOT / "build"))
atexit.register(shutil.rmtree, MADE, ignore_errors=True)
setup(
    version=VERSION,
    install_requires=required(),
    extras_require={name: lines_of(file_of(name)) for name in ("data", "onnx", "prove", "pycaffe")},
    entry_points={"console_scripts": ["cuffi = cuffi.commands.main:main"]} if EDITABLE else {},
    distclass=Binary,
    cmdclass={"build_py": Build},
    packages=packages(),
    package_dir={f"{NAME}.layers": "layers"},
    package_data={"": ["*", "*/*", "*/*/*", "*/*/*/*"], f"{NAME}.old_torch": ["include/**/*"]},
    exclude_package_data={"": ["*.partial", "*.pyc", "__pycache__/*"]},
    options={
        "bdist_wheel": {"py_limited_api": ABI},
        "build": {"build_base": str(MADE)},
        "egg_info": {"egg_base": str(MADE)},
    },
)

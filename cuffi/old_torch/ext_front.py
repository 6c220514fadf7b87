"""Run a script or a program whose torch.utils.cpp_extension is ours.

python -m cuffi.ext setup.py build_ext --inplace   builds an unedited extension; also install, develop, bdist_wheel
python -m cuffi.ext script.py ...                  runs a script that calls load or load_inline, or imports the result
python -m cuffi.ext -m pytest tests                runs a module, such as an extension's own tests
python -m cuffi.ext pip install --no-build-isolation .   a program: the Pythons that it starts have it, too

Without a GPU the processor replaces it, only in these processes: torch.cuda.is_available() is true, .cuda() returns the
tensor itself, device="cuda" means the processor, and each tensor's is_cuda is true.
"""

import contextlib
import difflib
import os
import re
import runpy
import sys

import torch
from setuptools.command.develop import develop

from ..base import CaffeError
from ..loading import cache

# The variable that makes a Python process install the module, and the file that looks at it.
VARIABLE = "CUFFI_EXT"
SITE = '''"""Written by the toolkit: torch.utils.cpp_extension is its own in the processes that it starts."""

import importlib.abc
import importlib.util
import os
import sys


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname != "torch.utils.cpp_extension":
            return None
        sys.meta_path.remove(self)
        sys.path.append({root!r})
        from {package} import cpp_extension

        return importlib.util.spec_from_loader(fullname, Loader(cpp_extension))


class Loader(importlib.abc.Loader):
    def __init__(self, module):
        self.module = module

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        module.install()


if os.environ.get({variable!r}):
    sys.meta_path.insert(0, Finder())
'''


def main(words: list[str] | None = None) -> int:
    """The exit status of the script or program."""
    words = sys.argv[1:] if words is None else words
    if not words or words[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if words else 2
    if wrong := _no_script(words[0]):
        print(f"cuffi ext: {wrong}", file=sys.stderr)
        return 2
    try:
        if os.path.basename(words[0]) == "setup.py" and "develop" in words and "install_dir" in vars(develop):
            return run_program(developed(words))
        if words[0].endswith(".py") or (words[0] == "-m" and len(words) > 1):
            return run_script(words)
        return run_program(words)
    except CaffeError as error:
        print(error, file=sys.stderr)
        return 1


def _no_script(word: str) -> str:
    """Why the first word is no script, if it looks like a file; "" if it may be one, or a program."""
    if word.endswith((".cpp", ".cc", ".cu", ".cuh", ".h", ".hpp")):
        return f"{word} is a source: give the setup.py or the script that builds it"
    if not word.endswith(".py") or os.path.exists(word):
        return ""
    folder = os.path.dirname(word)
    beside = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
    near = difflib.get_close_matches(os.path.basename(word), beside, n=1)
    return f"{word}: No such file" + (f"; did you mean {os.path.join(folder, near[0])}?" if near else "")


def _not_built(name: str, folder: str) -> str:
    """What is said of a module that the setup.py beside a script would build; "" if there is none."""
    setup = os.path.join(folder, "setup.py")
    with contextlib.suppress(OSError), open(setup, encoding="utf-8", errors="replace") as file:
        if re.search(rf"[\"'](?:[\w.]+\.)?{re.escape(name)}[\"']", file.read()):
            return f"No module named {name!r}, which {setup} builds: cuffi ext setup.py build_ext --inplace"
    return ""


def developed(words: list[str]) -> list[str]:
    """What `setup.py develop` means since setuptools 80: pip. It must not build where there is no torch."""
    options = [word for word in words[1:] if word != "develop"]
    folder = os.path.dirname(words[0]) or "."
    return ["pip", "install", "--no-build-isolation", "--use-pep517", *options, "-e", folder]


def run_script(words: list[str]) -> int:
    """Run a Python script, or a module after -m, in this process, as `python` does."""
    from . import cpp_extension, on_processor

    cpp_extension.install()
    if not torch.cuda.is_available():
        on_processor.stand_in()
    if words[0] == "-m":
        sys.argv, sys.path[0] = words[1:], os.getcwd()
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return 0
    sys.argv = words
    sys.path[0] = os.path.dirname(os.path.realpath(words[0]))
    try:
        runpy.run_path(words[0], run_name="__main__")
    except ModuleNotFoundError as error:
        if error.name and (said := _not_built(error.name, sys.path[0])):
            raise ModuleNotFoundError(said, name=error.name) from None
        raise
    return 0


def run_program(words: list[str]) -> int:
    """Run a program. Python's own start file tells the Pythons that it starts."""
    folder = cache.folder() / "site"
    folder.mkdir(exist_ok=True)
    package = __package__ or ""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    text = SITE.format(root=root, package=package, variable=VARIABLE)
    partial = folder / f"sitecustomize.py.{os.getpid()}.partial"
    partial.write_text(text)
    os.replace(partial, folder / "sitecustomize.py")
    os.environ[VARIABLE] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    if words[0] == "pip":
        words = [sys.executable, "-m", *words]
    try:
        os.execvp(words[0], words)
    except OSError as error:
        print(f"{words[0]}: {error.strerror}", file=sys.stderr)
        return 127

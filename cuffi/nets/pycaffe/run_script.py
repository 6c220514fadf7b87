"""python -m cuffi.caffe script.py args: run a pycaffe script unedited."""

from __future__ import annotations

import io
import os
import re
import sys
import types
from pathlib import Path

from ...base.shown import shown
from ..net.python_layer import public_face
from ..python2 import Tree, folders_of_user
from ..python2.printing import end_line
from .net_state import why_unlike

USAGE = """\
{name} script.py [arguments]

Runs a Python 2 or 3 script, or a notebook, that imports caffe, unedited. Its folder comes first on sys.path, as with
`python script.py`."""


def main(name: str, arguments: list[str], usage: str = USAGE, language: int = 0) -> int:
    """Run the script that is the first argument, with the others. Returns the exit status.

    Args:
        language: 3: a script that is valid in both versions of Python runs as Python 3.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage.format(name=name))
        return 0 if arguments else 2
    path = Path(arguments[0])
    if not path.is_file():
        what = "a folder: name a script in it:" if path.is_dir() else "there is no file"
        print(f"{name}: {what} {path.absolute()}", file=sys.stderr)
        return 2
    sys.argv = list(arguments)
    sys.path[0] = str(path.resolve().parent)
    Tree.running = tree = Tree((), {"caffe": public_face}, folders_of_user)
    main_module = types.ModuleType("__main__")
    main_module.__file__, main_module.__package__ = str(path), None
    sys.modules["__main__"] = main_module
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="surrogateescape")  # strings of Python 2 hold any bytes
    try:
        tree.run(path, vars(main_module), language)
    except Exception as error:  # also to show a notebook's lines instead of those of its JSON
        show(error)
        return 1
    finally:
        end_line()
    return 0


def show(error: Exception) -> None:
    """Print the user's own lines of a traceback, and the error."""
    import traceback

    if isinstance(error, SyntaxError) and Path(error.filename or "").is_file():  # no line of it ran
        print("".join(traceback.format_exception_only(error)), end="", file=sys.stderr)
        return
    own = str(Path(__file__).resolve().parents[2])
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(own)
    ]
    hint = _hint(error, frames[-1].line or "" if frames else "")
    print("".join(traceback.format_list(frames)) + f"{type(error).__name__}: {error}{hint}", file=sys.stderr)


_UNLIKE = re.compile(r"could not broadcast input array from shape \((.*?)\) into shape \((.*?)\)")


def _hint(error: Exception, line: str) -> str:
    """What to do about a file that is not there, or if a line writes an array of another shape to a blob."""
    if isinstance(error, FileNotFoundError) and not Path(os.fsdecode(error.filename or "/")).is_absolute():
        return f". Give its path from {shown(Path.cwd())}, or a full one"
    found = _UNLIKE.search(str(error))
    blob = re.search(r"blobs\[\s*['\"](\w+)['\"]\s*\]\.(data|diff)", line)
    if not found or not blob:
        return ""
    given, own = (tuple(int(word) for word in text.split(",") if word.strip()) for text in found.groups())
    return f". net.blobs[{blob[1]!r}]: {why_unlike(blob[1], given, own)}"

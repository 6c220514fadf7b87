"""The command `cuffi`, which is `python -m cuffi`, too.

    cuffi                     the list of commands
    cuffi net --help          one screen about a command

`cuffi --make net` is what the Makefile calls: arguments come from the environment, by make's names.
"""

from __future__ import annotations

import io
import sys

from ..folders import is_part
from ..installed import is_lost, lost, missing
from ..own_python import is_checkout, what_to_do
from ..version import VERSION
from . import run
from .table import COMMANDS, STATUS, Command

# Packages that commands import, and nets do not need: what installs them.
EXTRAS = {
    "cv2": "opencv-python",
    "h5py": "cuffi-nets[data]",
    "lmdb": "cuffi-nets[data]",
    "onnx": "cuffi-nets[onnx]",
    "onnxruntime": "cuffi-nets[onnx]",
    "onnxscript": "cuffi-nets[onnx]",
    "rich": "rich",
    "torch": "torch",
}
# What `make` installs.
NEEDED = ("cffi", "google", "grpc_tools", "pycparser", "torch", "tree_sitter", "tree_sitter_cuda")


def main(arguments: list[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: its name and its arguments; default: those of the process.

    Returns:
        its exit status. 2: it cannot start, and one line on stderr says why.

    Raises:
        SystemExit: the command's own parser refuses an argument.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    escape_what_cannot_be_shown()
    by_make = words[:1] == ["--make"]
    words = words[by_make:]
    if not words or words[0] in ("-h", "--help", "help"):
        print(listed())
        return 0
    if words[0] in ("-V", "--version"):
        print(f"cuffi {VERSION}")
        return 0
    name, rest = words[0], words[1:]
    if name not in COMMANDS:
        return refuse(f"cuffi: there is no command {name!r}{near(name)}. There are: {', '.join(COMMANDS)}")
    command = COMMANDS[name]
    if rest and rest[0] in ("-h", "--help"):
        print(screen(name, command))
        return 0
    if command.needs and not is_part(command.needs):
        return refuse(f"cuffi {name}: {missing(command.needs)}")
    try:
        return getattr(run, command.run)(name, rest, by_make) or 0
    except ModuleNotFoundError as error:
        if error.name is not None and is_lost(error.name):
            return refuse(f"cuffi {name}: {lost(error.name)}")
        if error.name in NEEDED and is_checkout():
            return refuse(f"cuffi {name}: {what_to_do(error.name)}")
        if error.name not in EXTRAS:
            raise
        return refuse(f'cuffi {name}: {error.name} is not installed: pip install "{EXTRAS[error.name]}"')


def escape_what_cannot_be_shown() -> None:
    """A name in a prototxt may have letters that the terminal's encoding, such as cp1252, does not have."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def refuse(line: str) -> int:
    print(line, file=sys.stderr)
    return 2


def near(name: str) -> str:
    import difflib

    found = difflib.get_close_matches(name, COMMANDS, n=1)
    return f" (did you mean {found[0]}?)" if found else ""


def listed() -> str:
    """The list of commands."""
    lines = [f"  {name:10} {command.summary}" for name, command in COMMANDS.items()]
    statuses = [f"  {status:3} {words}" for status, words in STATUS.items()]
    return "\n".join(
        ["usage: cuffi COMMAND [arguments]", "", *lines, "", "cuffi COMMAND --help has an example of each.",
         "cuffi --version prints the version.", "", "Exit status:", *statuses]
    )  # fmt: skip


def screen(name: str, command: Command) -> str:
    """One screen about a command."""
    parts = [f"usage: {' '.join(filter(None, ('cuffi', name, command.usage)))}", command.about]
    options = [f"  {o.flag:16} {o.help}" for o in command.options]
    if options:
        parts.append("\n".join(options))
    if command.status:
        parts.append(f"Exit status: {command.status}, or 2 if it cannot begin.")
    example = "\n".join(f"  {line}" for line in command.example.splitlines())
    return "\n\n".join([*parts, f"Example:\n{example}"])

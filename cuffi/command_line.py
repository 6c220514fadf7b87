"""The parser of all commands: what is wrong with a command line is said in one line, with the word to type."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Mapping

_NOT_READ = re.compile(r"argument (\S+): invalid (\w+) value: (.*)", re.DOTALL)
_NO_VALUE = re.compile(r"argument (\S+): expected (one|at least one) argument")
_NOT_ONE_OF = re.compile(r"argument (\S+): invalid choice: '?(.*?)'? \(choose from (.*)\)", re.DOTALL)
_KINDS = {"int": ("a whole number", "4"), "float": ("a number", "10")}


class Parser(argparse.ArgumentParser):
    """argparse's, without a usage text before the error.

    Args:
        endings: the options that take a file, by the end of its name.
    """

    def __init__(self, *words, endings: Mapping[str, str] | None = None, **options):
        super().__init__(*words, **options)
        self._endings = dict(endings or {})

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {self._plain(message)}\n")

    def parse_args(self, args=None, namespace=None):
        given, left = self.parse_known_args(args, namespace)
        if left:
            words = sys.argv[1:] if args is None else list(args)
            self.exit(2, f"{self.prog}: {self._not_known(left[0], words)}\n")
        return given

    def _flags(self) -> list[str]:
        return [flag for flag in self._option_string_actions if flag.startswith("--")]

    def _not_known(self, word: str, words: list[str]) -> str:
        """Words for one that no option and no argument takes, on a command line of these words."""
        if word.startswith("-"):
            near = difflib.get_close_matches(word.partition("=")[0], self._flags(), n=1)
            return f"no option {word}" + (f"; did you mean {near[0]}?" if near else self._all())
        own = next((flag for end, flag in self._endings.items() if word.endswith(end)), "")
        before = words[words.index(word) - 1] if word in words[1:] else ""
        if own and getattr(self._option_string_actions.get(before), "nargs", None) == 0:
            return f"{before} takes no file: leave it out, and give {own} {word}"
        return f"{word!r} is left over: " + (
            f"give it as {own} {word}" if own else f"leave it out{self._all()}"
        )

    def _all(self) -> str:
        return f". `{self.prog} --help` lists the options"

    def _plain(self, message: str) -> str:
        """argparse's words, with an example, a list or a name that is near."""
        if (found := _NOT_READ.fullmatch(message)) and found[2] in _KINDS:
            kind, example = _KINDS[found[2]]
            default = self._default(found[1])
            return f"{found[1]}: expected {kind} such as {default or example}, got {found[3]}"
        if found := _NO_VALUE.fullmatch(message):
            example = self._default(found[1]) or found[1].strip("-").upper()
            return f"{found[1]} takes a value: {found[1]} {example}"
        if found := _NOT_ONE_OF.fullmatch(message):
            known = [word.strip(" '") for word in found[3].split(",")]
            near = difflib.get_close_matches(found[2], known, n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            return f"{found[1]}: there is no {found[2]!r}{hint} There are: {', '.join(known)}"
        if message.startswith("the following arguments are required: "):
            return f"{message.partition(': ')[2]} is missing{self._all()}"
        return f"{message}{self._all()}"

    def _default(self, flag: str) -> str:
        """The value of an option that the command line does not give; "" if there is none."""
        default = getattr(self._option_string_actions.get(flag.split("/")[0]), "default", None)
        return str(default) if isinstance(default, int | float) and default else ""

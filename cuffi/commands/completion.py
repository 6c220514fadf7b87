"""`cuffi completion SHELL`: the lines that make a shell complete the commands of `cuffi`, from their table."""

from __future__ import annotations

import sys

from ..command_line import Parser
from .table import COMMANDS

_BASH = """_cuffi() {{
  local words
  if [ "$COMP_CWORD" -eq 1 ]; then words="{commands} --help --version"; else
    case "${{COMP_WORDS[1]}}" in
{cases}
      *) words="" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _cuffi cuffi
"""
_ZSH = """_cuffi() {{
  if (( CURRENT == 2 )); then
    local -a commands=({described})
    _describe command commands
  else
    case "${{words[2]}}" in
{cases}
    esac
    _files
  fi
}}
compdef _cuffi cuffi
"""


def words_of(name: str) -> list[str]:
    """What may follow a command: its options, and --help."""
    command = COMMANDS[name]
    return [*(o.flag for o in command.options if o.flag.startswith("-")), *command.flags, "--help"]


def bash() -> str:
    cases = [f'      {name}) words="{" ".join(words_of(name))}" ;;' for name in COMMANDS]
    return _BASH.format(commands=" ".join(COMMANDS), cases="\n".join(cases))


def zsh() -> str:
    described = " ".join(f"'{name}:{_plain(command.summary)}'" for name, command in COMMANDS.items())
    cases = [f"      {name}) compadd -- {' '.join(words_of(name))} ;;" for name in COMMANDS]
    return _ZSH.format(described=described, cases="\n".join(cases))


def fish() -> str:
    first = "complete -c cuffi -n __fish_use_subcommand"
    lines = [f"{first} -f -a {name} -d '{_plain(command.summary)}'" for name, command in COMMANDS.items()]
    for name in COMMANDS:
        seen = f"complete -c cuffi -n '__fish_seen_subcommand_from {name}'"
        lines += [
            f"{seen} -l {word[2:]}" if word.startswith("--") else f"{seen} -f -a {word}"
            for word in words_of(name)
        ]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Words without what ends a single quote of a shell, and without a colon, which zsh reads."""
    return text.replace("'", "").replace(":", ",")


def main(arguments: list[str]) -> int:
    shells = {"bash": bash, "zsh": zsh, "fish": fish}
    parser = Parser(prog="cuffi completion")
    parser.add_argument("shell", choices=list(shells))
    sys.stdout.write(shells[parser.parse_args(arguments).shell]())
    return 0

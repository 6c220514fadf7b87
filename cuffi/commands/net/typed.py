"""Settings as the user types them: `--shapes x=1,3` after `cuffi net`, `SHAPES=x=1,3` after `make net`."""

from __future__ import annotations

import os

from ...base.shown import command as shell
from ..table import COMMANDS


def typed(setting: str, value: str) -> str:
    """A setting with its value, for a shell: the flag of the command CALLED_AS (run.py), or else make's name."""
    name = os.environ.get("CALLED_AS", "").removeprefix("cuffi ")
    for option in COMMANDS[name].options if name in COMMANDS else ():
        if option.setting == setting:
            return shell(option.flag, value)
    return shell(f"{setting}={value}")

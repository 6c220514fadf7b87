"""`python -m cuffi` is the command `cuffi`. `cuffi folder` prints the folder alone, for make."""

import os
import subprocess
import sys

from conftest import ROOT


def run(*arguments: str, **environment):
    return subprocess.run(
        [sys.executable, "-m", "cuffi", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def test_without_arguments_it_lists_the_commands():
    assert run().stdout.startswith("usage: cuffi COMMAND")


def test_the_folder_alone_is_on_stdout():
    done = run("folder")
    assert done.stdout == f"{ROOT}\n" and not done.stderr

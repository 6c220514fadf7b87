"""What a shell completes after `cuffi`."""

import shutil
import subprocess

import pytest

from cuffi.commands import completion
from cuffi.commands.main import main
from cuffi.commands.table import COMMANDS


def completed(*words: str) -> list[str]:
    """What bash offers for the last word."""
    text = f"""{completion.bash()}
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cuffi; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", text, "bash", *words], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash():
    assert completed("cuffi", "") == [*COMMANDS, "--help", "--version"]
    assert completed("cuffi", "co") == ["completion"]
    assert completed("cuffi", "net", "--w") == ["--weights"]
    assert completed("cuffi", "judge", "--js") == ["--json"]
    assert completed("cuffi", "completion", "") == ["bash", "zsh", "fish", "--help"]
    assert completed("cuffi", "nothing", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_reads_its_lines(shell, capsys):
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    words = [word.lstrip("-") for name in COMMANDS for word in (name, *completion.words_of(name))]
    assert not [word for word in words if word not in text]
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


def test_another_shell_is_refused(capsys):
    with pytest.raises(SystemExit) as error:
        main(["completion", "csh"])
    assert error.value.code == 2 and "bash" in capsys.readouterr().err

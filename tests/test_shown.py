"""Texts of others on a terminal: no escape sequence, one line, and no word that a shell would expand."""

import shutil
import subprocess
import unicodedata

import pytest

from layers._shown import command, shown, without_escapes

HOSTILE = [
    "\x1b[2J",
    "a\nb",
    "\r",
    "\x9b1m",
    "\u202eabc",
    "\u2028",
    "\x00",
    "\x7f",
    "\udc80",
    "\b\b",
    "\u200b",
]
WORDS = [
    "`id`", "$(id)", "a;id", "a b", "'", '"', "\\", "*", "~", "#x", "!x", "", "-x", "a\nb", "\x1b]0;x\x07", "ü", "x=$(id)",
    "TYPE=`id`", "TYPE=a b", "a\\'\n",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_terminal_would_follow_is_an_escape(text):
    for said in (shown(f"x{text}y"), without_escapes(f"x{text}y").replace("\n", "")):
        assert said.isprintable() and said.startswith("x") and said.endswith("y"), said


@pytest.mark.parametrize("text", ["conv1/3x3", "größe", "層", "a b", ""])
def test_a_plain_name_stays_as_it_is(text):
    assert shown(text) == without_escapes(text) == text


def test_the_lines_and_tabs_of_a_message_stay():
    assert without_escapes("a\tb\nc\x1b[1m") == "a\tb\nc\\x1b[1m"


def test_every_control_character_of_unicode_is_escaped():
    control = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) in ("Cc", "Cs", "Zl", "Zp")]
    assert not [c for c in control if not shown(c).isprintable()]
    assert not [c for c in control if c not in "\t\n" and not without_escapes(c).isprintable()]


@pytest.mark.parametrize("word", WORDS)
def test_a_shell_reads_a_command_s_words_as_they_were(word):
    bash = shutil.which("bash") or pytest.skip("there is no bash")
    line = command("printf", "%s\\0", word, f"NAME={word}")
    assert line.isprintable()
    read = subprocess.run([bash, "-c", line], capture_output=True, check=True).stdout
    assert read == f"{word}\0NAME={word}\0".encode()

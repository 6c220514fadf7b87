"""Texts of others on a terminal: no escape sequence, one line, and no word that a shell would expand."""

import shutil
import subprocess
import unicodedata

import pytest

from cuffi import CaffeError, caffe_net
from cuffi.base.shown import command, shown, without_escapes
from tools.refused import Refused

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
    "`id`", "$(id)", "a;id", "a b", "'", '"', "\\", "*", "~", "#x", "!x", "", "-x", "a\nb", "\x1b]0;x\x07", "ü",
    "x=$(id)", "TYPE=`id`", "TYPE=a b", "a\\'\n",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_terminal_would_follow_is_an_escape(text):
    given = f"x{text}y"
    assert "\n" not in shown(given)
    for said in (shown(given), without_escapes(given), str(Refused(given)), str(CaffeError(given))):
        said = said.replace("\n", "")
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


# A net with a hostile text in each place that a message may name.
NET = """name: "{0}" input: "d" input_shape {{ dim: 1 }}
layer {{ name: "{1}" type: "{2}" bottom: "{3}" top: "{4}" {5} }}"""
PLACES = ["n", "c", "ReLU", "d", "y", ""]
PARAM = (
    'python_param {{ module: "{0}" layer: "x" }}',
    'unknown_param {{ x: "{0}" }}',
    "relu_param {{ engine: {0} }}",
)


ESCAPES = [r"\033[2J", r"\033]0;x\007", "\x1b[2J", r"\nTo port: make port TYPE=evil", r"\302\233"]


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("place", range(8))
def test_no_control_character_of_a_prototxt_reaches_the_terminal(escape, place, capfd):
    values = list(PLACES)
    if place < 5:
        values[place] += escape
    else:
        values[2], values[5] = ("Python" if place == 5 else "ReLU"), PARAM[place - 5].format(escape)
    try:
        print(*caffe_net(NET.format(*values)).notes)
    except CaffeError as error:
        print(error)
    said = "".join(capfd.readouterr()).replace("\t", "")
    assert "\x1b" not in said and "\x9b" not in said and "\nTo port: make port TYPE=evil" not in said
    assert all(line.isprintable() for line in said.split("\n"))


@pytest.mark.parametrize("type_name", ["`id`", "$(id)", "a;id", "a b", "it's"])
def test_the_command_for_a_type_that_is_missing_is_safe_to_paste(type_name):
    with pytest.raises(CaffeError) as raised:
        caffe_net(NET.format("n", "c", type_name, "d", "y", ""))
    (line,) = (line for line in str(raised.value).splitlines() if "make port" in line)
    assert line.endswith(command(f"TYPE={type_name}"))

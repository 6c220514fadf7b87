"""A command's refusal: its text reaches a terminal."""

from tools.refused import Refused


def test_a_refusal_has_no_escape_sequences():
    assert str(Refused("a\x1b[2J\nb\tc")) == "a\\x1b[2J\nb\tc"

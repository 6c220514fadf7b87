"""make fuzz's command line."""

import pytest

from lab.fuzz.options import ROOT, parser


def test_what_is_said_and_what_is_not():
    given = parser("it").parse_args(["--layers", "a", "b", "--minutes", "0.5"])
    assert (given.layers, given.minutes) == (["a", "b"], 0.5)
    nothing = parser("it").parse_args([])
    assert (nothing.layers, nothing.minutes, nothing.seed) == (None, 1, 1)
    assert nothing.layers_dir == str(ROOT / "layers")


@pytest.mark.parametrize("minutes", ["0", "-1", "nan"])
def test_in_no_time_nothing_is_found(minutes, capsys):
    with pytest.raises(SystemExit):
        parser("it").parse_args(["--minutes", minutes])
    assert f"expected a number above 0, got {minutes}" in capsys.readouterr().err

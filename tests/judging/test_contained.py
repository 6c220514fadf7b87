"""What a judged program may change. tests/judging/test_limits.py tries it."""

import tempfile
from pathlib import Path

from conftest import ROOT

from cuffi.judging import contained


def test_where_it_runs_is_its_own_unless_the_toolkit_lies_there(tmp_path, monkeypatch):
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.chdir(tmp_path)
    found = contained.changeable(own, [tmp_path / "no-such-folder"])
    assert found[0] == own and tmp_path in found and Path("/dev") in found
    temporary = Path(
        tempfile.gettempdir()
    ).resolve()  # which programs may change, also where the checkout lies in it
    for place in {ROOT, ROOT / "tests", ROOT.parent, Path.home()} - {temporary}:
        monkeypatch.chdir(place)
        assert Path.cwd() not in contained.changeable(own)


def test_without_landlock_there_are_no_rules(tmp_path, monkeypatch):
    monkeypatch.setattr(contained, "version", lambda: 0)
    with contained.ruleset([tmp_path]) as rules:
        assert rules is None and not contained.is_contained()

"""Settings as the command that was typed takes them."""

import pytest

from cuffi.commands.net import __main__ as net


@pytest.mark.parametrize(
    ("called_as", "wanted"),
    [
        ("cuffi net", ["--shapes x=1,3,...", "--ignore p.strange", "--python-path '/a folder'"]),
        ("", ["SHAPES=x=1,3,...", "IGNORE=p.strange", "PYTHON_PATH='/a folder'"]),
    ],
)
def test_settings_are_named_as_the_command_that_was_typed_takes_them(called_as, wanted, monkeypatch):
    monkeypatch.setenv("CALLED_AS", called_as)
    said = "shapes={'x': (...)} ignore=('p.strange',) python_path=['/a folder']"
    assert net.as_typed(said) == " ".join(wanted)

"""make net: layers without bottoms, and inputs without a shape."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from cuffi.commands.net import __main__ as net
from cuffi.commands.net import porting
from cuffi.runtime import CaffeValueError
from tools.make.settings import Settings

NET = """layer { name: "read" type: "Reader" top: "x" top: "label" }
layer { name: "more" type: "MoreData" top: "more" }
layer { name: "one" type: "Indicator" top: "one" }
layer { name: "two" type: "Own" bottom: "x" bottom: "one" bottom: "more" top: "two" }
"""


@pytest.fixture
def ran() -> list:
    """The commands that prepare would run."""
    return []


@pytest.fixture
def building(fork, tmp_path, monkeypatch, ran):
    """Runs prepare. Returns the commands that it would run."""
    monkeypatch.setattr(
        porting.subprocess,
        "run",
        lambda command, **_: ran.append(command[2:]) or SimpleNamespace(returncode=0),
    )
    fork.layer("Reader", base="BasePrefetchingDataLayer")
    fork.layer("Indicator")
    fork.layer("Own")
    (tmp_path / "x.prototxt").write_text(NET)

    def run(shapes: str, caffe=fork.root):
        ran.clear()
        for name, value in (("PROTOTXT", tmp_path / "x.prototxt"), ("CAFFE", caffe), ("SHAPES", shapes)):
            monkeypatch.setenv(name, str(value))
        asked = net.CommandLine([Settings({"LAYERS_DIR": str(tmp_path / "mine")})], verify=False)
        assert net.prepare(asked, Console(file=io.StringIO()))
        return ran

    return run


def test_a_forks_own_layer_without_bottoms_is_ported(building, tmp_path):
    """A data layer stays an input: port refuses it, or its name says so."""
    assert building("x=2,3 more=1")[0][-1] == "Indicator Own"
    # There, and not built.
    for name in ("indicator", "own"):
        (tmp_path / "mine" / name).mkdir()
        (tmp_path / "mine" / name / "__init__.py").write_text(f'caffe_layer(__name__, "{name.title()}")\n')
    assert building("x=2,3 more=1", "")[0][-1] == "LAYERS=indicator own"


def test_missing_shapes_are_said_before_a_build(building, ran):
    """Before, the message came after a build of two minutes."""
    with pytest.raises(
        CaffeValueError, match=r"shape of input 'x' is not in the file: shapes=\{'x'"
    ) as raised:
        building("")
    assert "shape of input 'more'" in str(raised.value) and "'one'" not in str(raised.value)
    assert "label" not in str(raised.value)  # nobody reads it
    assert not ran

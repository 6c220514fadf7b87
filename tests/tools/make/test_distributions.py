"""Which file of the package belongs to which distribution."""

from conftest import ROOT

from tools.make.distributions import NETS, is_of_nets


def test_each_name_is_there():
    assert not [name for name in NETS if not (ROOT / "cuffi" / name).exists()]


def test_a_path_belongs_to_its_top():
    assert is_of_nets("base/files.py") and is_of_nets("__init__.py")
    assert not is_of_nets("runtime/__init__.py") and not is_of_nets("edge.py")

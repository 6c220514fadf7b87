"""The C++ compiler that is found."""

import pytest

from cuffi.base.compiler import SEARCH, cxx


@pytest.mark.parametrize(
    "there, wanted", [(["g++", "clang++"], "g++"), (["clang++"], "clang++"), ([], "g++"), (["g++"], "g++")]
)
def test_clang_where_it_is_alone(tmp_path, monkeypatch, there, wanted):
    for name in there:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert cxx() == cxx("") == cxx(SEARCH) == wanted


def test_what_is_named_is_taken(monkeypatch):
    monkeypatch.setenv("CXX", "g++-12 -m64")
    assert cxx() == cxx(SEARCH) == "g++-12 -m64" and cxx("clang++") == "clang++"

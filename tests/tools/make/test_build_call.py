"""The extension that makes calls: how it is compiled, and that a failure leaves the old one."""

import sys

import pytest
from conftest import ROOT

from tools.make import build_call
from tools.make.backends import edge


@pytest.fixture
def built(tmp_path, monkeypatch):
    """built(script): the exit status with a compiler that is this shell script; the file beside it is the output."""

    def run(script: str) -> int:
        (tmp_path / "cxx").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "cxx").chmod(0o755)
        command = ["build_call", str(tmp_path / "_call.so"), "--cxx", f"{tmp_path}/cxx '-DA=b c'"]
        monkeypatch.setattr(sys, "argv", command)
        return build_call.main()

    return run


def test_the_compiler_gets_the_digest_of_the_edge(built, tmp_path):
    script = f'cat >{tmp_path}/unit; printf "%s\\n" "$@" >{tmp_path}/given; for last; do :; done; echo new >"$last"'
    assert built(script) == 0 and (tmp_path / "_call.so").read_text() == "new\n"
    given = (tmp_path / "given").read_text().splitlines()
    assert given[0] == "-DA=b c" and f'-DCAFFE_EDGE="{edge.digest(ROOT, edge.call_files())}"' in given
    assert (tmp_path / "unit").read_text().startswith(f'#include "{ROOT}/src/edge/call.cpp"\n')
    assert given[-1] == f"{tmp_path}/_call.so.partial"
    assert not (tmp_path / "_call.so.partial").exists()


def test_a_failure_leaves_the_old_one(built, tmp_path):
    (tmp_path / "_call.so").write_text("old")
    assert built('for last; do :; done; echo half >"$last"; exit 1') == 1
    assert (tmp_path / "_call.so").read_text() == "old"

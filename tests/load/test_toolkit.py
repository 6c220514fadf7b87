"""The digest of the toolkit's own files."""

import shutil

import pytest
from support.load import ROOT

from layers._load import toolkit

pytestmark = pytest.mark.usefixtures("cache")


def test_a_changed_toolkit_builds_again(own_cache, tmp_path, monkeypatch):
    copy = tmp_path / "toolkit"
    for part in toolkit.PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / part).exists():
            copy.mkdir(exist_ok=True)
            shutil.copy(ROOT / part, copy / part)
    same = toolkit.digest()
    monkeypatch.setattr(toolkit, "root", lambda: copy)
    assert toolkit.digest() == same
    header = copy / "include" / "caffe_cuda_macro.h"
    header.write_text(header.read_text() + "// changed\n")
    assert toolkit.digest() != same

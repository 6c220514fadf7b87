"""The digest of the toolkit's own files."""

import shutil

import pytest
from support.load import ROOT

from cuffi.loading import toolkit

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


def test_packages_that_write_code(tmp_path, monkeypatch):
    """Another version is another folder, so the key of a build changes with it."""
    toolkit.writers.cache_clear()
    for name in ("cffi-1.17.1.dist-info", "tree_sitter_cuda-0.21.2.dist-info", "pycparser-2.21.egg-info",
                 "cffi_tools-1.0.dist-info", "cffi"):  # fmt: skip
        (tmp_path / name).mkdir()
    monkeypatch.setattr("sys.path", [str(tmp_path), str(tmp_path / "none"), str(tmp_path / "a.zip")])
    found = ["cffi-1.17.1.dist-info", "pycparser-2.21.egg-info", "tree_sitter_cuda-0.21.2.dist-info"]
    assert toolkit.writers() == found
    toolkit.writers.cache_clear()
    (tmp_path / found[0]).rename(tmp_path / "cffi-1.17.2.dist-info")
    assert toolkit.writers() == ["cffi-1.17.2.dist-info", *found[1:]]
    toolkit.writers.cache_clear()

"""What decides whether a layer is built again."""

import pytest
import torch
from support.load import QUICK_FILL

from cuffi import load_inline
from cuffi.loading import recipe, toolkit

pytestmark = pytest.mark.usefixtures("cache")


def test_what_a_key_consists_of(own_cache, tmp_path, monkeypatch):
    compiler = tmp_path / "cxx"
    compiler.touch(mode=0o755)
    monkeypatch.setenv("CXX", str(compiler))
    makes = []  # nothing is compiled
    monkeypatch.setattr(recipe, "make", lambda *given: makes.append(given))

    def built(**options):
        before = len(makes)
        load_inline("fills", QUICK_FILL.format(value=2), **options)
        return len(makes) > before

    assert built()
    assert not built()
    monkeypatch.setenv("HOST_ARCH", "x86-64-v3")
    assert built()
    assert not built()
    monkeypatch.setattr(toolkit, "writers", lambda: ["cffi 0"])
    assert built()
    compiler.write_text("\n")
    assert built()


def test_a_fork_of_a_process_that_used_a_gpu_builds_for_the_host(monkeypatch):
    """A DataLoader's worker. torch refuses to tell it about the GPUs."""
    monkeypatch.delenv("ARCH", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)
    _, backends = recipe.settings_for("load", None, None)
    assert backends == ("host",)

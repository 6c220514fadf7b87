"""make site: a broken link, a page without a place and an undocumented public name are errors."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from conftest import ROOT

pytest.importorskip("mkdocs", reason="pip install -r requirements/site.txt")
pytest.importorskip("griffe", reason="pip install -r requirements/site.txt")


def test_each_public_name_has_a_place():
    import cuffi
    from lab.site import INNER, reference

    pages = reference.pages()
    assert all(f"heading: cuffi.{name}\n" in pages["cuffi.md"] for name in cuffi._PUBLIC)
    assert "heading: cuffi.dnn.readNetFromCaffe\n" in pages["dnn.md"]
    assert "::: sigmoid.sigmoid\n" in pages["layers.md"] and "'set_phase_test'" in pages["caffe.md"]
    assert not [name for name in INNER if f"'{name.partition('.')[2]}'" in pages["cuffi.md"]]


@pytest.mark.parametrize("docstring", [None, SimpleNamespace(value=" ")])
def test_an_undocumented_public_name_is_named(docstring):
    from lab.site import reference

    said = SimpleNamespace(docstring=SimpleNamespace(value="It is."))
    with pytest.raises(reference.Undocumented, match=r"^without a docstring: cuffi\.x$"):
        reference.check({"cuffi.x": SimpleNamespace(docstring=docstring), "cuffi.y": said})


@pytest.mark.parametrize(
    "text, words",
    [
        ("[a](b.md)", "'b.md', but the target is not found"),
        ("[a](#c)", "'#c', but there is no such anchor"),
        ("[a](/d)", "absolute link '/d'"),
        ("# With `code`, and more\n[a](#with-code-and-more)", ""),
    ],
)
def test_a_broken_link_is_an_error(tmp_path, text, words):
    """With the site's own settings."""
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text(text)
    settings = f"INHERIT: {ROOT}/lab/site/mkdocs.yml\ndocs_dir: pages\nsite_dir: html\nplugins: []\nnav: [index.md]\n"
    (tmp_path / "mkdocs.yml").write_text(settings)
    command = [sys.executable, "-m", "mkdocs", "build", "-f", str(tmp_path / "mkdocs.yml")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert bool(done.returncode) == bool(words) and words in done.stderr, done.stderr

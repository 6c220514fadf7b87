"""What a release's workflow refuses: another version, old news, addresses that are placeholders."""

import pytest

from lab.wheel import release


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "cuffi").mkdir()
    (tmp_path / "packaging" / "nets").mkdir(parents=True)
    (tmp_path / "cuffi" / "version.py").write_text('VERSION = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 1.2.3 2026-11-30\n\n- More.\n\n## 1.2.2\n")
    for project in ("pyproject.toml", "packaging/nets/pyproject.toml"):
        (tmp_path / project).write_text('[project.urls]\nSource = "https://forge.test/cuffi"\n')
    return tmp_path


def test_a_tree_that_fits(tree):
    assert release.wrong("v1.2.3", tree) == []


@pytest.mark.parametrize(
    "file, text, said",
    [
        ("cuffi/version.py", 'VERSION = "1.2.4"\n', "the tag is v1.2.3, and cuffi/version.py says 1.2.4"),
        ("CHANGELOG.md", "# Changes\n\n## 1.2.3\n", "CHANGELOG.md's newest section is of 1.2.3, dated None"),
        ("CHANGELOG.md", "# Changes\n\n## 1.2.2 2026-01-01\n", "is of 1.2.2, dated 2026-01-01"),
        ("CHANGELOG.md", "# Changes\n", "is of nothing"),
        ("pyproject.toml", "https://example.org/cuffi", "pyproject.toml: [project.urls] has placeholders"),
        ("packaging/nets/pyproject.toml", "example.org", "packaging/nets/pyproject.toml: [project.urls]"),
    ],
)
def test_what_is_refused(tree, file, text, said):
    (tree / file).write_text(text)
    assert any(said in line for line in release.wrong("v1.2.3", tree))


def test_this_tree_is_read():
    """Its own files are in the form that is expected, whatever they say now."""
    assert not [line for line in release.wrong("v0") if "is of nothing" in line]

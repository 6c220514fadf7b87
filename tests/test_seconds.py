"""The times of the tests' folders (support/seconds.py)."""

from support.seconds import FILE, grown, read


def test_a_folder_that_grew_by_a_tenth_is_named():
    before = {"nets": 50.0, "tools/make": 30.0, "docs": 20.0}
    assert not grown({"nets": 100, "tools/make": 60, "docs": 40}, before)  # another machine
    (line,) = grown({"nets": 50, "tools/make": 40, "docs": 20}, before)
    assert line == "tools/make took 40 s, 33 s by tests/seconds.txt"
    assert not grown({"nets": 50, "tools/make": 30, "docs": 20.5}, before)
    assert len(grown({"nets": 50, "new": 50}, before)) == 1


def test_the_file_has_every_folder_with_tests():
    folders = {path.parent for path in FILE.parent.rglob("test_*.py") if "fixtures" not in path.parts}
    names = {"/".join(folder.relative_to(FILE.parent).parts[:2]) or "." for folder in folders}
    assert set(read(FILE.read_text())) == names

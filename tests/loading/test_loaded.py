"""Built folders as modules: each content is imported once, under any name."""

import pytest
from support.load import filled, folder

from cuffi import load, load_inline

pytestmark = pytest.mark.usefixtures("cache")


def test_changed_python_builds_nothing(tmp_path, own_cache, compiler):
    path = folder(tmp_path)
    first = load(path)
    starts = len(compiler.starts)
    (path / "__init__.py").write_text((path / "__init__.py").read_text() + "\nADDED = 1\n")
    second = load(path)
    assert second is not first and second.ADDED == 1 and filled(second) == 1
    assert len(compiler.starts) == starts


def test_a_function_is_looked_up_once(monkeypatch):
    module = load_inline("twice", "__global__ void twice(float* x) { *x *= 2; }")
    first = module.twice
    monkeypatch.setattr(type(module.layer), "named", None)
    assert module.twice is first


def test_two_folders_of_one_name(tmp_path):
    one, other = load(folder(tmp_path / "a", value=1)), load(folder(tmp_path / "b", value=2))
    assert (filled(one), filled(other), filled(one)) == (1, 2, 1)


def test_two_folders_of_one_content(tmp_path, own_cache, compiler):
    one = load(folder(tmp_path / "a"))
    starts = len(compiler.starts)
    other = load(folder(tmp_path / "b"))
    assert len(compiler.starts) == starts
    assert (one.__file__, other.__file__) == (
        str(tmp_path / "a/fills/__init__.py"),
        str(tmp_path / "b/fills/__init__.py"),
    )


def test_python_that_fails_is_not_half_imported(tmp_path):
    path = folder(tmp_path, init="raise KeyError('mine')\n")
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            load(path)

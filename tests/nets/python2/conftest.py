"""Fixtures of this folder."""

import pytest

from cuffi.nets.python2 import Tree


@pytest.fixture
def run(tmp_path):
    """run(text): the value of `out` after a Python 2 file has run. Its first line is valid only in Python 2."""

    def run(text: str, mark: str = "if 0: print 'Python 2'\n"):
        path = tmp_path / "old.py"
        path.write_text(text if text.startswith("from __future__") else mark + text)
        names = {}
        Tree([tmp_path], {}).run(path, names)
        return names["out"]

    return run


@pytest.fixture
def tree(tmp_path):
    """tree({path: text}): a Tree of a folder with these files."""
    made = []

    def tree(files: dict[str, str], **provided) -> Tree:
        folder = tmp_path / str(len(made))
        made.append(folder)
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return Tree([folder], {name: lambda module=module: module for name, module in provided.items()})

    return tree

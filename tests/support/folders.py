"""A folder of files as make sees it."""

import pytest

from tools.make.folders import Folder


@pytest.fixture
def folder(tmp_path):
    """A folder of these files, {name: text}."""

    def made(**files):
        for name, text in files.items():
            file = tmp_path / "one" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return Folder(str(tmp_path / "one"))

    return made

"""Read a git repository of somebody else. Nothing that its configuration names is run.

git runs programs that a repository's own .git/config names: to ask for changed files, to filter, to fetch what is
missing. So git gets a folder with an empty configuration instead, with the repository's objects and its index. The
files beside them (HEAD, the references, the remote's address) are read here.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

_CONFIG = "[core]\n\trepositoryformatversion = {version}\n\tbare = false\n{extensions}"
_NAME = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")  # of an object: SHA-1 or SHA-256


class Repository:
    """The repository of a folder.

    Attributes:
        top: the folder of the working tree.
        place: its own .git folder; that of a submodule or a linked tree lies elsewhere.
    """

    def __init__(self, top: Path, place: Path):
        self.top, self.place = top, place
        common = _line(place / "commondir")
        self._common = (place / common).resolve() if common else place

    def head(self) -> str:
        """The name of the commit; "" if there is none."""
        return self._named(_line(self.place / "HEAD"))

    def _named(self, text: str) -> str:
        for _ in range(5):  # a reference may name another one
            if _NAME.fullmatch(text):
                return text
            name = text.removeprefix("ref:").strip()
            if not re.fullmatch(r"(refs/)?[^\s:]+", name) or ".." in name:
                return ""
            text = _line(self.place / name) or _line(self._common / name) or self._packed().get(name, "")
        return ""

    def references(self) -> dict[str, str]:
        """The commits by the full names of the branches and tags: refs/heads/main."""
        found = self._packed()
        for kind in ("heads", "remotes", "tags"):
            for above, _, files in os.walk(self._common / "refs" / kind):
                for file in files:
                    path = Path(above, file)
                    found[str(path.relative_to(self._common))] = self._named(_line(path))
        return {name: commit for name, commit in sorted(found.items()) if commit}

    def _packed(self) -> dict[str, str]:
        lines = _text(self._common / "packed-refs").splitlines()
        pairs = (line.split(" ", 1) for line in lines if _NAME.match(line) and " " in line)
        return {name: commit for commit, name in pairs}

    def remote(self) -> str:
        """The address of the remote `origin`, without a password; "" if there is none."""
        section = re.search(
            r'^\s*\[remote "origin"\]((?:\n(?!\s*\[).*)*)', _text(self._common / "config"), re.M
        )
        url = re.search(r'^\s*url\s*=\s*"?([^"\s]*)', section[1], re.M) if section else None
        return re.sub(r"//[^/@]*@", "//", url[1]) if url else ""

    def files(self) -> dict[str, str]:
        """What git knows in the working tree: the name of each file's content, or of a submodule's commit, by path."""
        entries = (entry.partition("\t") for entry in self.git("ls-files", "-s", "-z").split("\0"))
        return {path: before.split()[1] for before, _, path in entries if path}

    def git(self, *arguments: str) -> str:
        """What a command prints that reads objects or the index; "" if it fails, or if there is no git."""
        ours = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
        with tempfile.TemporaryDirectory() as folder:
            for name in ("objects", "refs", "tree"):
                os.mkdir(f"{folder}/{name}")
            Path(folder, "HEAD").write_text("ref: refs/heads/none\n")
            Path(folder, "config").write_text(self._config())
            ours |= {
                "GIT_DIR": folder, "GIT_WORK_TREE": f"{folder}/tree", "GIT_INDEX_FILE": str(self.place / "index"),
                "GIT_OBJECT_DIRECTORY": str(self._common / "objects"), "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_NOSYSTEM": "1", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0",
            }  # fmt: skip
            try:
                done = subprocess.run(
                    ["git", *arguments], cwd=f"{folder}/tree", env=ours, stdin=subprocess.DEVNULL,
                    capture_output=True, text=True, errors="replace", timeout=30,
                )  # fmt: skip
            except (OSError, subprocess.TimeoutExpired):
                return ""
        return done.stdout if done.returncode == 0 else ""

    def _config(self) -> str:
        sha256 = re.search(r"^\s*objectformat\s*=\s*sha256\s*$", _text(self._common / "config"), re.M | re.I)
        extensions = "[extensions]\n\tobjectformat = sha256\n" if sha256 else ""
        return _CONFIG.format(version=int(bool(sha256)), extensions=extensions)


def repository_of(folder: Path) -> Repository | None:
    """The repository in whose working tree the folder lies; None if there is none."""
    for top in (folder := Path(os.path.abspath(folder)), *folder.parents):
        place = top / ".git"
        if place.is_file() and (named := re.fullmatch(r"gitdir: (.+)", _line(place))):
            place = top / named[1]
        if (place / "HEAD").is_file():
            return Repository(top, place.resolve())
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _line(path: Path) -> str:
    return _text(path).strip()

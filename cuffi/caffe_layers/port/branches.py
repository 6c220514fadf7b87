"""Find a layer elsewhere in a fork's repository: on another branch, or at a submodule's commit."""

from __future__ import annotations

import re
from pathlib import Path

from tools.package_module import package_module

from .git import Repository, repository_of

_MOST = 40  # branches that are searched

_command = package_module("base/shown").command
_shown = package_module("base/shown").shown


def elsewhere(root: Path, type_name: str) -> str:
    """A sentence on the branch, or the commit of a submodule, that has the type; "" if nothing is known."""
    repository = repository_of(root) if (Path(root) / ".git").exists() else None
    if repository is None:
        return ""
    if branch := _branch(repository, type_name):
        checkout = _command("git", "-C", root, "checkout", branch)
        return f" The branch {_shown(branch)} of this repository has it: {checkout}"
    outer = repository_of(repository.top.parent)
    if outer and _is_other_commit(repository, outer):
        update = _command("git", "-C", outer.top, "submodule", "update")
        return f" It is a submodule at another commit than {_shown(outer.top)} names: {update}"
    return ""


def _branch(repository: Repository, type_name: str) -> str:
    """The first branch or tag whose files register the type."""
    commits: dict[str, str] = {}
    for name, commit in repository.references().items():
        commits.setdefault(commit, name)
    registered = rf"REGISTER_LAYER_C[A-Z]+\({re.escape(type_name)}[,)]"
    searched = list(commits)[:_MOST]
    found = repository.git("grep", "-lE", registered, *searched, "--", "*.cpp", "*.cu") if searched else ""
    commit = found.partition(":")[0]
    return re.sub(r"^refs/(heads|remotes|tags)/", "", commits.get(commit, ""))


def _is_other_commit(inner: Repository, outer: Repository) -> bool:
    named = outer.files().get(str(inner.top.relative_to(outer.top)))
    return named is not None and named != inner.head()

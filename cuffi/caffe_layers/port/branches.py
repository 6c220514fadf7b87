"""Find a layer elsewhere in a fork's repository: on another branch, or at a submodule's commit."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_MOST = 40  # branches that are searched


def elsewhere(root: Path, type_name: str) -> str:
    """A sentence on the branch, or the commit of a submodule, that has the type; "" if nothing is known."""
    if not (Path(root) / ".git").exists():
        return ""
    names = _git(
        root, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes", "refs/tags"
    ).split()
    registered = rf"REGISTER_LAYER_C[A-Z]+\({re.escape(type_name)}[,)]"
    found = _git(root, "grep", "-lE", registered, *names[:_MOST], "--", "*.cpp", "*.cu").splitlines()
    if found:
        branch = re.sub(r"^refs/(heads|remotes|tags)/", "", found[0].partition(":")[0])
        return f" The branch {branch} of this repository has it: git -C {root} checkout {branch}"
    outer = _git(root, "rev-parse", "--show-superproject-working-tree").strip()
    if outer and _git(outer, "submodule", "status", str(root)).startswith("+"):
        return f" It is a submodule at another commit than {outer} names: git -C {outer} submodule update"
    return ""


def _git(folder, *command: str) -> str:
    """What git prints; "" if it fails, or is missing."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *command], capture_output=True, text=True, errors="replace", timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""

"""A fork's repository is read, and nothing that its configuration names is run. git itself is the reference."""

import re
import subprocess
from pathlib import Path

import pytest
from support.typed import not_none

from cuffi.caffe_layers.port.branches import elsewhere
from cuffi.caffe_layers.port.git import repository_of
from cuffi.caffe_layers.port.write_folder import git_of


def git(folder, *command: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    words = ["git", "-C", str(folder), *identity, *command]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def made(folder: Path, *options: str) -> Path:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main", *options)
    for name in ("a.cpp", "src/b.cpp", "src/ü.cpp"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"REGISTER_LAYER_CLASS({Path(name).stem.upper()});")
    git(folder, "add", "."), git(folder, "commit", "-qm", "a")
    git(folder, "remote", "add", "origin", "https://me:secret@example.org/x.git")
    git(folder, "checkout", "-q", "-b", "other/one"), git(folder, "commit", "-qm", "b", "--allow-empty")
    git(folder, "tag", "v1"), git(folder, "checkout", "-q", "main")
    (folder / "unknown.cpp").write_text("")
    return folder


@pytest.fixture(scope="module", params=["plain", "packed", "sha256", "linked", "detached"])
def folder(request, tmp_path_factory):
    above = tmp_path_factory.mktemp(request.param)
    folder = made(above / "fork", *(["--object-format=sha256"] if request.param == "sha256" else []))
    if request.param == "packed":
        git(folder, "gc", "-q"), git(folder, "pack-refs", "--all")
    if request.param == "linked":
        git(folder, "worktree", "add", "-q", str(above / "linked"), "other/one")
        return above / "linked"
    if request.param == "detached":
        git(folder, "checkout", "-q", "--detach", "HEAD")
    return folder


def test_it_reads_what_git_reads(folder):
    read = not_none(repository_of(folder / "src"))
    assert read.top == folder and read.head() == git(folder, "rev-parse", "HEAD")
    assert set(read.files()) == set(git(folder, "ls-files", "-z").strip("\0").split("\0"))
    shown = git(folder, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    assert read.references() == dict(line.split() for line in shown)
    assert read.remote() == "https://example.org/x.git"
    assert git_of(str(folder / "src"))[0] == {"b.cpp", "ü.cpp"}


# Each is the configuration of a hostile repository; PROGRAM leaves a trace if it runs.
HOSTILE = {
    "fsmonitor": {"core.fsmonitor": "PROGRAM"},
    "pager": {"core.pager": "PROGRAM", "pager.grep": "PROGRAM", "pager.ls-files": "PROGRAM"},
    "filters": {"filter.x.clean": "PROGRAM", "filter.x.smudge": "PROGRAM", "filter.x.process": "PROGRAM"},
    "diff": {"diff.external": "PROGRAM", "diff.x.textconv": "PROGRAM", "grep.fallbackToNoIndex": "true"},
    "hooks": {"core.hooksPath": "HOOKS"},
    "an alias": {"alias.grep": "!PROGRAM", "alias.ls-files": "!PROGRAM"},
    "a partial clone": {
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": "/nowhere",
        "remote.origin.uploadpack": "PROGRAM",
        "core.sshCommand": "PROGRAM",
    },
    "an include": {"include.path": "more"},
}


@pytest.fixture(params=HOSTILE)
def hostile(request, tmp_path):
    """A repository with an object missing, a configuration, hooks and attributes, and the trace of what ran."""
    folder, trace, program = made(tmp_path / "fork"), tmp_path / "ran", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {trace}\nexit 1\n")
    program.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc"):
        (hooks / hook).symlink_to(program)
    (folder / ".git" / "more").write_text(f"[core]\n\tfsmonitor = {program}\n")
    (folder / ".gitattributes").write_text("* filter=x diff=x\n")
    blob = git(folder, "rev-parse", "HEAD:a.cpp")
    (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    git(folder, "config", "core.repositoryformatversion", "1")
    for name, value in HOSTILE[request.param].items():
        git(folder, "config", name, value.replace("PROGRAM", str(program)).replace("HOOKS", str(hooks)))
    return folder, trace


def test_nothing_that_the_configuration_names_is_run(hostile):
    folder, trace = hostile
    assert not_none(repository_of(folder)).head() and "a.cpp" in git_of(str(folder))[0]
    elsewhere(folder, "B")
    assert not trace.exists()


def test_these_configurations_do_run_programs(tmp_path):
    """So the test above can fail."""
    folder, trace = made(tmp_path / "fork"), tmp_path / "ran"
    git(folder, "config", "core.fsmonitor", f"touch {trace}; false")
    subprocess.run(["git", "-C", folder, "ls-files", "-m"], capture_output=True)
    subprocess.run(["git", "-C", folder, "status"], capture_output=True)
    assert trace.exists()


def test_the_tools_start_git_in_no_other_way():
    """cuffi/caffe_layers/port/bodies.py is for developers, and is given BVLC's own repository."""
    root = Path(__file__).resolve().parents[3]
    files = [*(root / "cuffi/caffe_layers/port").glob("*.py"), *(root / "cuffi/commands/net").glob("*.py")]
    named = {f.name for f in files if re.search(r"""\[\s*["']git["']""", f.read_text())}
    assert named == {"git.py", "bodies.py"}


def test_a_branch_s_name_is_quoted(tmp_path):
    folder = made(tmp_path / "a b")
    git(folder, "checkout", "-q", "-b", "$(id)"), (folder / "c.cpp").write_text("REGISTER_LAYER_CLASS(NEW);")
    git(folder, "add", "c.cpp"), git(folder, "commit", "-qm", "c"), git(folder, "checkout", "-q", "main")
    assert elsewhere(folder, "NEW").endswith(f"git -C '{folder}' checkout '$(id)'")

"""A type on another branch, or at a submodule's commit: the message has the command to get it."""

import subprocess

import pytest

from cuffi.caffe_layers.port.branches import elsewhere


def git(folder, *command: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", "-C", str(folder), *identity, *command], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    """A repository whose branch `detector` registers ROIPooling and ROI."""
    folder = tmp_path / "fork"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.cpp").write_text("int a;")
    git(folder, "add", "."), git(folder, "commit", "-qm", "a")
    git(folder, "checkout", "-q", "-b", "detector")
    (folder / "b.cpp").write_text("REGISTER_LAYER_CLASS(ROIPooling);")
    git(folder, "add", "."), git(folder, "commit", "-qm", "b")
    git(folder, "checkout", "-q", "main")
    return folder


def test_a_branch_that_has_the_type_is_named(repository, tmp_path):
    assert elsewhere(repository, "ROIPooling") == (
        f" The branch detector of this repository has it: git -C {repository} checkout detector"
    )
    assert elsewhere(repository, "ROI") == elsewhere(tmp_path, "ROIPooling") == ""


def test_a_submodule_at_another_commit_is_named(repository, tmp_path):
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "add", "-q", "-b", "detector", str(repository), "caffe")
    git(outer, "commit", "-qm", "c")
    git(outer / "caffe", "checkout", "-q", "--detach", "HEAD~1")
    (
        git(outer / "caffe", "branch", "-qD", "detector"),
        git(outer / "caffe", "branch", "-qdr", "origin/detector"),
    )
    assert elsewhere(outer / "caffe", "ROIPooling") == (
        f" It is a submodule at another commit than {outer} names: git -C {outer} submodule update"
    )


def test_the_command_names_the_branch(fork, port):
    """Behind the refusal of a type that this branch does not register, and of no other."""
    git(fork.root, "init", "-q", "-b", "main")
    git(fork.root, "add", "."), git(fork.root, "commit", "-qm", "a")
    git(fork.root, "checkout", "-q", "-b", "detector")
    fork.layer("Shift")
    git(fork.root, "add", "."), git(fork.root, "commit", "-qm", "b")
    git(fork.root, "checkout", "-q", "main")
    told = "The branch detector of this repository has it"
    assert told in port("Shift", fails=True) and told not in port("Python", fails=True)

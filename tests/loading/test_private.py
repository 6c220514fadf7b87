"""Folders of the cache: what another user could change is found, whatever its kind."""

import os
import stat
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from cuffi.loading import private


def test_a_folder_for_its_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        made = private.make_private(tmp_path / "own")
    finally:
        os.umask(before)
    assert stat.S_IMODE(made.stat().st_mode) == 0o700 and private.make_private(made) == made


def test_a_folder_that_several_make_at_once_keeps_what_is_in_it(tmp_path):
    """One removed what another had just made, or ended with "Is a directory": 241 of 300 times."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def make(place, barrier, number):
        barrier.wait()
        (private.make_private(place) / str(number)).touch()

    try:
        with ThreadPoolExecutor(4) as pool:
            for place in (tmp_path / str(turn) for turn in range(40)):
                barrier = threading.Barrier(4)
                list(pool.map(lambda n, p=place, b=barrier: make(p, b, n), range(4)))
                assert len(list(place.iterdir())) == 4
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("kind", ["file", "link", "broken link", "open folder"])
def test_anything_else_of_its_name_is_removed(tmp_path, kind):
    path, other = tmp_path / "own", tmp_path / "other"
    other.mkdir(mode=0o700)
    (other / "kept").touch()
    if kind == "file":
        path.touch()
    elif kind == "open folder":
        (path / "below").mkdir(parents=True)
        path.chmod(0o777)
    else:
        path.symlink_to(other if kind == "link" else "/nowhere")
    private.make_private(path)
    assert private.is_own(path) and not list(path.iterdir()) and (other / "kept").exists()


def test_what_is_removed_and_what_it_links_to(tmp_path):
    (tmp_path / "folder" / "below").mkdir(parents=True)
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "kept").mkdir()
    private.removed(tmp_path / "folder")
    private.removed(tmp_path / "never there")
    assert os.listdir(tmp_path) == ["kept"]


def test_permissions_of_others_are_taken(tmp_path):
    for name, mode in (("a/b", 0o777), ("a/c", 0o664), ("a/d", 0o755)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.mkdir() if name == "a/b" else path.touch()
        path.chmod(mode)
    (tmp_path / "a" / "link").symlink_to("/nowhere")
    private.close(tmp_path)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "a").glob("[b-d]")}
    assert modes == {"b": 0o700, "c": 0o600, "d": 0o700}


@pytest.mark.parametrize(
    ("mode", "why"),
    [(0o700, None), (0o755, None), (0o775, "others may write"), (0o702, "others may write")],
)
def test_why_a_folder_is_unsafe(tmp_path, mode, why):
    tmp_path.chmod(mode)
    assert (private.why_unsafe(tmp_path) or "").startswith(f"{why} to it" if why else "")
    assert (private.why_unsafe(tmp_path) is None) == (why is None)


def _another_users(path):
    """Root can give a folder away. Another user can only let others write to it, which is as unsafe."""
    if os.geteuid() == 0:
        os.chown(path, 12345, -1, follow_symlinks=False)
    elif not path.is_symlink():
        path.chmod(0o777)
    else:
        pytest.skip("only root can give a link away")


def _cache_by_link(place, kind):
    """A path of one's own folder by a link, and who else could change where it leads."""
    own, others = place / "own", place / "others"
    own.mkdir(mode=0o700)
    others.mkdir(mode=0o755)
    if kind == "the link in their folder":
        (others / "link").symlink_to(own)
        _another_users(others)
        return others / "link"
    if kind == "a folder of theirs with a link above":
        (own / "cuffi").mkdir(mode=0o700)
        (others / "link").symlink_to(own)
        _another_users(others)
        return others / "link" / "cuffi"
    if kind == "a link of ours to a link of theirs":
        (others / "link").symlink_to(own)
        _another_users(others)
        (place / "mine").symlink_to("others/link")
        return place / "mine"
    if kind == "a link of theirs in a sticky folder":
        others.chmod(0o1777)
        (others / "link").symlink_to(own)
        _another_users(others / "link")
        return others / "link"
    assert kind == "behind .. of their link"
    (own / "below").mkdir(mode=0o700)
    (others / "link").symlink_to(own / "below")
    _another_users(others)
    return others / "link" / ".."


LINKS = (
    "the link in their folder", "a folder of theirs with a link above", "a link of ours to a link of theirs",
    "a link of theirs in a sticky folder", "behind .. of their link",
)  # fmt: skip


@pytest.mark.parametrize("kind", LINKS)
def test_a_link_that_others_can_change_is_refused(tmp_path, kind):
    """The folder itself is one's own, and so is all above it; where the path leads is not."""
    path = _cache_by_link(tmp_path, kind)
    assert private.why_unsafe(path.resolve()) is None
    why = private.why_unsafe(path)
    assert why and "link" in why
    assert str(tmp_path / "others") in why


def test_ones_own_links_are_followed(tmp_path):
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "one").symlink_to("own")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    (tmp_path / "sticky").mkdir()
    (tmp_path / "sticky").chmod(0o1777)
    (tmp_path / "sticky" / "three").symlink_to("../two")
    for link in ("one", "two", "sticky/three", "sticky/../two"):
        assert private.why_unsafe(tmp_path / link) is None

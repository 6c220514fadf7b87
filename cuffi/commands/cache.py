"""`cuffi cache`: what was built at run time, how large it is, and an end of it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

from ..command_line import Parser

# A layer or a module that was built: <name>-<key>.
_ENTRY = re.compile(r"(.+)-[0-9a-f]{32}")
# Parts of builds, and programs. What has another name is not ours: CUFFI_CACHE may be a folder with other things in it.
_OURS = re.compile(rf"{_ENTRY.pattern}|(core|proto|programs)-[0-9a-f]+|bytecode|judge|site")


def size(folder: Path) -> int:
    """The bytes of a folder's files on the disk. What another process removes meanwhile has none."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
    return total


def folders(place: Path) -> list[Path]:
    """The cache's own folders."""
    own = (entry for entry in place.iterdir() if _OURS.fullmatch(entry.name))
    return sorted(entry for entry in own if entry.is_dir() and not entry.is_symlink())


def clear(place: Path) -> tuple[list[str], list[str]]:
    """Remove all folders that no build is using. Returns the names of those that went, and of those that stay."""
    from ..loading.sweep import unused  # locks of files, which Windows has not

    gone, stay = [], []
    for folder in folders(place):
        with unused(folder) as is_unused:
            if is_unused:
                shutil.rmtree(folder, ignore_errors=True)
        (stay if folder.exists() else gone).append(folder.name)
    return gone, stay


def main(arguments: list[str]) -> int:
    parser = Parser(prog="cuffi cache")
    parser.add_argument("--clear", action="store_true", help="remove what no build is using")
    options = parser.parse_args(arguments)
    from ..loading import cache  # which Windows cannot import

    place = cache.folder()
    sizes = {folder.name: size(folder) for folder in folders(place)}
    if options.clear:
        gone, stay = clear(place)
        print(f"{place}: {len(gone)} folders removed, {sum(sizes[n] for n in gone) / 1e6:.1f} MB")
        if stay:
            print(f"In use, or not to be removed: {', '.join(stay)}")
        return 1 if stay else 0
    built = [name for name in sizes if _ENTRY.fullmatch(name)]
    print(f"{place}: {sum(sizes.values()) / 1e6:.1f} MB, {len(built)} built layers and modules")
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True)[:10]:
        entry = _ENTRY.fullmatch(name)
        print(f"  {sizes[name] / 1e6:8.1f} MB  {entry[1] if entry else name}")
    return 0

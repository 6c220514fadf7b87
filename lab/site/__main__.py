"""Build the site into build/site/html: `python -m lab.site`. A broken link, a page that no menu has or an undocumented
public name is an error.

It needs requirements/site.txt, and no torch: docstrings are read, and nothing is imported but `cuffi`.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "build" / "site" / "pages"
# The pages of the tree, which keep their places, so that the links between them are right.
DOCUMENTS = ("*.md", "docs/**/*.md", "cuffi/*/README.md", "lab/README.md", "lab/*/*.md")
# What pages show and link.
FILES = ("LICENSE", "docs/figures/*", "docs/evidence/*.csv")


def files() -> list[Path]:
    """The files of the tree that the site has."""
    return sorted({f for pattern in (*DOCUMENTS, *FILES) for f in ROOT.glob(pattern) if f.is_file()})


def gather() -> int:
    """Copy the pages, and write the reference. Returns the number of pages."""
    from .reference import pages

    shutil.rmtree(PAGES, ignore_errors=True)
    found = files()
    for file in found:
        place = PAGES / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
    made = pages()
    (PAGES / "reference").mkdir()
    for name, text in made.items():
        (PAGES / "reference" / name).write_text(text, encoding="utf-8")
    return len([f for f in found if f.suffix == ".md"]) + len(made)


def main() -> int:
    """The command. Returns its exit status."""
    began = time.monotonic()
    try:
        from .reference import Undocumented
    except ModuleNotFoundError as error:
        print(
            f"make site: {error.name} is missing: python -m pip install -r requirements/site.txt",
            file=sys.stderr,
        )
        return 2
    try:
        number = gather()
    except Undocumented as error:
        print(f"make site: public names {error}", file=sys.stderr)
        return 1
    command = [sys.executable, "-m", "mkdocs", "build", "-f", "lab/site/mkdocs.yml"]
    # The theme's own news is no warning about this site.
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    if done.returncode == 0:
        print(f"build/site/html: {number} pages, {time.monotonic() - began:.1f} s")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())

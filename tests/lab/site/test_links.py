"""The links of the site's pages, and its menu. Without mkdocs, so that every run of the suite reads them."""

import os
import re
from pathlib import Path

from conftest import ROOT

from lab.site.__main__ import files
from lab.site.slug import slug

FILES = files()
PAGES = {file: file.read_text(encoding="utf-8") for file in FILES if file.suffix == ".md"}
_CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.M | re.S)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def links() -> list[tuple[Path, str]]:
    return [(page, link) for page, text in PAGES.items() for link in _LINK.findall(_CODE.sub("", text))]


def anchors(page: Path) -> set[str]:
    """Those of its headings. A second heading of a name gets a number."""
    names = [slug(heading) for heading in re.findall(r"^#+ +(.*?) *$", PAGES[page], re.M)]
    return {f"{name}_{n}" if (n := names[:i].count(name)) else name for i, name in enumerate(names)}


def test_each_link_leads_to_a_page_or_a_file_of_the_site():
    broken = []
    for page, link in links():
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = Path(os.path.normpath(page.parent / path)) if path else page
        if target not in FILES or (anchor and target in PAGES and anchor not in anchors(target)):
            broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert not broken, "\n".join(broken)
    assert len(links()) > 150


def test_each_page_is_in_the_menu_once():
    """mkdocs gives an error for one that is not."""
    menu = re.findall(r"^ +- (?:[\w ]+: )?([\w/.-]+\.md)$", (ROOT / "lab/site/mkdocs.yml").read_text(), re.M)
    own = [page for page in menu if not page.startswith("reference/")]
    listed = set(own) | {"docs/evidence/types-of-forks.md"}
    assert len(own) == len(set(own)) and listed <= {str(page.relative_to(ROOT)) for page in PAGES}
    assert {str(page.relative_to(ROOT)) for page in PAGES} == listed

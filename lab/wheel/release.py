"""May this commit be released under this tag? What a workflow can read: the version, the news and the addresses.

python -m lab.wheel.release v0.9.0
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PLACEHOLDER = "example.org"
_HEAD = re.compile(r"^## (\S+)(?: +\(?(\d{4}-\d{2}-\d{2})\)?)?", re.M)


def wrong(tag: str, root: Path = ROOT) -> list[str]:
    """Why not, a line each."""
    found = []
    read: dict = {}
    exec((root / "cuffi" / "version.py").read_text(encoding="utf-8"), read)
    if tag != f"v{read['VERSION']}":
        found.append(f"the tag is {tag}, and cuffi/version.py says {read['VERSION']}")
    head = _HEAD.search((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    version, date = (head[1], head[2]) if head else ("nothing", None)
    if version != read["VERSION"] or not date:
        found.append(
            f"CHANGELOG.md's newest section is of {version}, dated {date}: "
            f"expected '## {read['VERSION']} YEAR-MONTH-DAY'"
        )
    for project in ("pyproject.toml", "packaging/nets/pyproject.toml"):
        if _PLACEHOLDER in (root / project).read_text(encoding="utf-8"):
            found.append(f"{project}: [project.urls] has placeholders ({_PLACEHOLDER})")
    return found


def main(tag: str) -> int:
    reasons = wrong(tag)
    print(*(reasons or [f"{tag} may be released"]), sep="\n")
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))

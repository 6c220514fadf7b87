"""Small programs of Python 2 (the forms of statements.txt), and what Python 2.7.18 printed for each (statements.json).

    PYTHONPATH=/its/libraries python tests/nets/python2/statements.py /path/to/python2.7

writes statements.json again.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FACTS = HERE / "statements.json"


def forms() -> list[tuple[str, dict[str, list[str]]]]:
    """(text, the values of its places) of each form."""
    found = []
    for block in re.split(r"^=== .*\n", (HERE / "statements.txt").read_text(), flags=re.MULTILINE)[1:]:
        text, *places = re.split(r"^--- ", block, flags=re.MULTILINE)
        if not text:
            continue
        values = {}
        for place in places:
            name, _, rest = place.partition("\n")
            parts = re.split(r"^\* ", rest, flags=re.MULTILINE)[1:]
            values[name] = [part.removesuffix("\n").replace("\n  ", "\n") for part in parts]
        found.append((text.removesuffix("\n"), values))
    return found


def programs() -> list[str]:
    """All programs."""
    made = []
    for form, places in forms():
        for values in itertools.product(*places.values()):
            text = form
            for place, value in zip(places, values, strict=True):
                names = place.replace("}{", "} {").split(" ")
                for name, part in zip(names, value.split("|"), strict=False):
                    text = text.replace(name, part)
            made.append(text.replace("{{", "{").replace("}}", "}"))
    return list(dict.fromkeys(made))


def printed(python: str, text: str) -> str | None:
    """What a Python prints for a program. None if the program ends with an error."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "old.py").write_text(text)
        done = subprocess.run([python, "old.py"], cwd=folder, capture_output=True, check=False)
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None


if __name__ == "__main__":
    facts = {text: printed(sys.argv[1], text) for text in programs()}
    for text in (text for text, out in facts.items() if out is None):
        print(f"an error, left out: {text!r}", file=sys.stderr)
    kept = {text: out for text, out in facts.items() if out is not None}
    FACTS.write_text(json.dumps(kept, indent=0, ensure_ascii=True) + "\n")
    print(f"{len(kept)} programs")

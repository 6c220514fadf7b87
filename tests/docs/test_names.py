"""One name: the package is `cuffi`, in all docs, comments and messages, and a file that they name exists."""

import ast
import re
import subprocess
import sys

import pytest
from conftest import ROOT
from support.syntax import tree_of

TEXTS = {".py", ".md", ".h", ".hpp", ".cpp", ".cu", ".cuh", ".mk", ".in", ".proto", ".toml", ".yml", ""}

# Names of before the wings, each in the forms that a text of ours could still have.
OLD = {
    "the package": r"\b(?:from|import) layers\b|-m layers\b|\blayers\._\w+|\blayers/_\w+/|`layers\.(?!mk)\w",
    "its private parts": r"(?<![\w.*])_(?:runtime|caffe|net|solver|data|pycaffe|python2|dnn|load|ffi)(?:/\w|`)",
    "tools of a wing": r"(?<![\w/.])tools[./](?:caffe|port|verify|net|ffi|fuzz|caffetest)\b",
    "old headers": r"(?<![\w/.])include/(?:legacy|TH|THC|ffi)\b",
    "sources of the core": r"(?<![\w/.])src/(?:th_call|edge/call_caffe)\b",
}

# Texts in which such a name is right. They are about old folders, scripts of others, or these very names.
RIGHT = {
    "cuffi/packages.py": "names that older folders of layers import",
    "layers/__init__.py": "says what to write now",
    "cuffi/nets/pycaffe/coord_map.py": "pycaffe's own `layers`",
    "docs/architecture/toolkit.md": "names that older folders of layers import",
    "docs/use-from-anywhere.md": "names that older folders of layers import",
    "tests/docs/test_names.py": "this file",
    "tests/nets/pycaffe": "pycaffe's own `layers`",
    "tests/nets/python2/test_modules.py": "a script's own `layers`",
    "tests/old_torch/ffi/test_program.py": "a script's own `layers`",
    "tests/support": "older folders of layers",
    "tests/test_folders.py": "older folders of layers",
    "tests/tools": "older folders of layers",
    "tools/make/job.py": "names that older folders of layers import",
}

# The beginning of a path in this tree. `src/caffe` and `include/caffe` are a fork's.
PATH = re.compile(
    r"(?<![\w./$\"'{<*-])(?:cuffi|tools|mk|lab|benchmarks|requirements|src/edge|src/host)/[\w./-]+"
)

# Paths of examples, of forks and of what is built.
ELSEWHERE = re.compile(
    r"cuffi/(?:x/y\.py|_toolkit|layers|nets/net/_caffe\.desc|<)|tools/(?:x/|demo|extra/|run\.py)|requirements/some"
)


def listed() -> list[str]:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True).stdout.split(
        "\0"
    )
    return [n for n in names if n and (ROOT / n).is_file() and not n.startswith("tests/fixtures/")]


def found_in_texts(pattern: str | re.Pattern[str]):
    """(place, line, match) in the project's own texts. The CHANGELOG tells what names were."""
    files = [n for n in listed() if (ROOT / n).suffix in TEXTS and n != "CHANGELOG.md"]
    if not files:
        pytest.skip("no checkout of git's")
    for name in files:
        text = (ROOT / name).read_text(errors="replace")
        for match in re.finditer(pattern, text):
            start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
            yield f"{name}:{text.count(chr(10), 0, start) + 1}", text[start:end].strip()[:90], match[0]


@pytest.mark.parametrize("what", OLD)
def test_no_text_has_a_name_of_before(what):
    found = found_in_texts(OLD[what])
    wrong = [f"{place}: {line}" for place, line, _ in found if not place.startswith(tuple(RIGHT))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "line",
    [
        "from layers.sigmoid import sigmoid",
        "python -m layers.train",
        "`layers/_net/net.py`",
        "python -m tools.port",
    ],
)
def test_the_names_of_before_would_be_seen(line):
    assert any(re.search(pattern, line) for pattern in OLD.values())


def test_each_path_that_a_text_names_exists():
    lacking = []
    for place, _, path in found_in_texts(PATH):
        path = path.rstrip("./-")
        there = (ROOT / path).exists() or (ROOT / f"{path}.py").exists()
        if not there and not ELSEWHERE.match(path):
            lacking.append(f"{place}: {path}")
    assert not lacking, "\n".join(lacking)


def test_each_module_says_in_its_head_what_it_holds():
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout of git's")
    modules = [n for n in listed() if n.endswith(".py") and not n.startswith("tests/")]
    trees = {name: tree_of(ROOT / name) for name in modules}
    silent = [name for name, tree in trees.items() if tree.body and not ast.get_docstring(tree)]
    assert modules and not silent


def test_import_layers_says_what_to_write():
    """In one line, from the checkout; a second way in would make two modules of each layer."""
    done = subprocess.run(
        [sys.executable, "-c", "from layers.round import Round"], cwd=ROOT, capture_output=True, text=True
    )
    last = done.stderr.splitlines()[-1]
    assert done.returncode and last.startswith(
        "ImportError: the package is called cuffi: write `from cuffi ...`"
    )

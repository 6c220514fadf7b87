"""README.md and docs/: their code runs, their files build, and their commands and links exist."""

import importlib
import importlib.util
import re
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from conftest import ROOT, make
from support import makefiles

from cuffi.runtime.cases import load_package

DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "cuffi").glob("*/README.md")),
    *sorted((ROOT / "lab").rglob("*.md")),
]


class Block(NamedTuple):
    """A fenced block: its language, its text, and the file that its first line names, if any."""

    language: str
    text: str

    @property
    def file(self) -> str | None:
        named = re.match(r"(?://|#) layers/(\S+)\n", self.text)
        return named[1] if named else None


def blocks(document: Path) -> list[Block]:
    found = re.findall(r"^```(\w*)[^\n]*\n(.*?)^```$", document.read_text(), re.M | re.S)
    return [Block(*block) for block in found]


# Of inductor's compilations this leaves what a package is made of: 7 seconds of 25.
QUICK = {
    "aot_inductor.precompile_headers": False,
    "aot_inductor.compile_wrapper_opt_level": "O0",
    "cpp.vec_isa_ok": True,
}


# Packages that a page's program needs, and the tests do not install: they take hundreds of megabytes.
OPTIONAL = [name for name in ("ray",) if importlib.util.find_spec(name) is None]


def programs(document: Path) -> list[Block]:
    found = [block for block in blocks(document) if block.language == "python" and not block.file]
    return [block for block in found if not any(f"import {name}\n" in block.text for name in OPTIONAL)]


@pytest.mark.filterwarnings("ignore")  # torch's own, about its own
@pytest.mark.parametrize(
    "document", [d for d in DOCUMENTS if programs(d)], ids=lambda d: str(d.relative_to(ROOT))
)
def test_python_runs(document, tmp_path, session_cache, tree_core, monkeypatch):
    """The programs run in order and in one namespace, as a user would type them."""
    names = {}
    # Not the user's own, in which an earlier run of the suite has left its libraries.
    monkeypatch.setenv("CUFFI_CACHE", str(session_cache))
    if not torch.cuda.is_available():
        monkeypatch.setenv("NVCC", "")  # nothing could run what it makes
    monkeypatch.chdir(tmp_path)
    options = {name: value for name, value in QUICK.items() if name in torch._inductor.list_options()}
    with torch._inductor.config.patch(options):
        for block in programs(document):
            exec(compile(block.text, f"<{document.name}>", "exec"), names)


def test_layer_of_the_docs_builds_and_computes(tmp_path):
    """Copies of its files are a layer, with its cases.py and without."""
    folder = tmp_path / "mine"
    files = {b.file: b.text for b in blocks(ROOT / "docs" / "write-a-layer.md") if b.file}
    assert len(files) == 4
    for cases in (False, True):
        for name, text in files.items():
            if name.endswith("cases.py") == cases:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text)
        done = make(f"LAYERS_DIR={folder}", "NVCC=", "all", with_torch=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        assert ("no cases yet" in done.stdout) == (not cases)
    package = load_package(folder, "layers_of_the_docs")
    module = importlib.import_module(f"{package}.softsign")
    softsign = module.softsign
    x = torch.linspace(-3, 3, 1001, dtype=torch.float64, requires_grad=True)
    with pytest.raises(ValueError, match="softsign: bottom: expected"):
        module.layer.softsign_forward(x.detach(), torch.empty_like(x), 10**9)
    torch.testing.assert_close(softsign(x), torch.nn.functional.softsign(x))
    torch.testing.assert_close(
        torch.autograd.grad(softsign(x).sum(), x), torch.autograd.grad((x / (1 + x.abs())).sum(), x)
    )


def commands(document: Path) -> list[str]:
    text = "\n".join(block.text for block in blocks(document) if not block.language)
    inline = re.findall(r"`((?:\w+=\S+ )?make(?: [^`]*)?)`", document.read_text())
    return re.findall(r"^(?:\$ )?(make\b[^\n#]*)", text, re.M) + inline


@pytest.mark.parametrize(
    "document", [d for d in DOCUMENTS if commands(d)], ids=lambda d: str(d.relative_to(ROOT))
)
def test_commands_exist(document):
    """Each target is one of the Makefile, each setting is one that make knows."""
    targets = set(re.findall(r"^([a-z-]+):.*##", makefiles.TEXT, re.M))
    refusal = make("NO_SUCH_SETTING=1", "help")
    settings = set(re.findall(r"[A-Z_]{1,}", (refusal.stderr + refusal.stdout).partition("There are:")[2]))
    for command in commands(document):
        words = re.sub(r"'[^']*'|\"[^\"]*\"|\[[^]]*\]", "x", command).split()[1:]
        for word in words:
            name, equals, _ = word.partition("=")
            if equals:
                assert name in settings, (command, name)
            elif not word.startswith(("-", "x", ".", "toolkit")):
                assert word in targets, (command, word)


def anchors(document: Path) -> set[str]:
    """A page's headings in the form of links: lower case, words joined by "-", no punctuation."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    """Each linked file exists, and each linked section is a heading of that page. Blocks of code have no links."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        file, _, section = target.partition("#")
        page = (document.parent / file).resolve() if file else document
        assert page.exists(), target
        assert not section or section in anchors(page), target


def test_the_site_has_each_page_and_takes_no_numbers_for_links():
    """make site would stop; its packages are not in CI. In Markdown, `[3] [4]` is a link to a section `4`."""
    nav = (ROOT / "lab" / "site" / "mkdocs.yml").read_text()
    pages = [
        d for d in DOCUMENTS if d.is_relative_to(ROOT / "docs") or d.is_relative_to(ROOT / "lab" / "evidence")
    ]
    assert [d for d in pages if str(d.relative_to(ROOT)) not in nav] == []
    links = re.compile(r"\[[^\]\n]*\] ?\[[^\]\n]*\]")
    for document in pages:
        shown = re.sub(r"^```.*?^```$|`[^`\n]*`", "", document.read_text(), flags=re.M | re.S)
        assert links.findall(shown) == [], document

"""Commands that the toolkit suggests, in all of its sources: what comes from a file or a user is quoted."""

import ast
import re

import pytest
from conftest import ROOT

# Where a text begins to be a command for a shell.
COMMAND = re.compile(
    r"\bmake (-C|port|net|ffi|new|verify|verify-net|train|onnx|caffetest|sanitize|clean|[A-Z_]+=)|\bpip install\b"
    r"|\bpython3? -m |\bgit -C\b|\bcp -r\b|\bcd \S|\bexport |\b[A-Z]{3,}=$"
)
# What follows an argument that a message repeats, `TYPE=x: there is no such type`. It is no command.
ECHO = re.compile(r": |, |; | is | cannot ")
# Calls that quote, or that return commands made by these.
QUOTES = {"command", "shell", "quote", "hint", "suite", "suite_command", "make_command", "join"}
# Values that are no text of others: constants of the toolkit, and names that were checked to be identifiers.
CHECKED = {"PACKAGES", "__package__", "__spec__"}


def values_in_commands(text: str):
    """(line, source) of each value that an f-string puts into a command without a call that quotes."""
    tree = ast.parse(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    inside = {part for call in calls if quotes(call) for part in ast.walk(call)}
    # A word of a list of arguments, which no shell reads: ["make", f"PYTHON={x}"].
    lists = [node.elts for node in ast.walk(tree) if isinstance(node, ast.List)]
    lists += [call.args for call in calls if getattr(call.func, "attr", "") == "append"]
    inside |= {word for words in lists for word in words if is_word(word)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr) or node in inside:
            continue
        before = ""
        for part, after in zip(node.values, [*node.values[1:], None], strict=True):
            if isinstance(part, ast.Constant):
                before += str(part.value)
                continue
            assert isinstance(part, ast.FormattedValue)
            sentence = re.split(r"[.:;,?!] |\n|` ?", before)[-1]
            echoed = before.endswith("=") and isinstance(after, ast.Constant) and ECHO.match(str(after.value))
            if COMMAND.search(sentence) and not echoed and not quotes(part.value):
                yield part.value.lineno, f"{sentence}{{{ast.unparse(part.value)}}}"
            before += "{}"


def is_word(node: ast.expr) -> bool:
    """Is it `NAME={value}`, and nothing else?"""
    texts = [part.value for part in getattr(node, "values", ()) if isinstance(part, ast.Constant)]
    return len(texts) == 1 and re.fullmatch(r"[A-Z_]+=", str(texts[0])) is not None


def quotes(value: ast.expr) -> bool:
    calls = [node.func for node in ast.walk(value) if isinstance(node, ast.Call)]
    names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
    words = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    return bool(names & QUOTES) or bool(words & CHECKED)


def test_each_value_in_a_suggested_command_is_quoted():
    files = [f for folder in ("layers", "tools") for f in sorted((ROOT / folder).rglob("*.py"))]
    files += [ROOT / "test.py", ROOT / "setup.py"]
    found = [
        f"{file.relative_to(ROOT)}:{line}: {text}"
        for file in files
        if "templates" not in file.parts
        for line, text in values_in_commands(file.read_text())
    ]
    assert not found, "cuffi/base/shown.py: command() quotes\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        'f"To port it: make port TYPE={x}"',
        'f"git -C {root} checkout"',
        'f"pip install {name}"',
        'f"TYPE={x}"',
    ],
)
def test_an_unquoted_value_is_found(text):
    assert list(values_in_commands(text))


@pytest.mark.parametrize(
    "text",
    [
        'f"make port {command(x)}"',
        'command(f"TYPE={x}")',
        'f"make port: {error}"',
        'f"TYPE={quote(x)}"',
        'f"{x}: pip install y"',
        'f"TYPE={x}: there is no such type"',
        '["make", f"TYPE={x}"]',
    ],
)
def test_a_quoted_value_and_a_message_are_right(text):
    assert not list(values_in_commands(text))

"""Prototxts as trees with line numbers: templates, nesting, strings, writing them again."""

import random
import time

import pytest
from google.protobuf import text_format
from google.protobuf.text_encoding import CUnescape
from google.protobuf.wrappers_pb2 import Int64Value, StringValue
from support.typed import not_none
from support.zoo import raises

from cuffi.base import CaffeValueError
from cuffi.caffe_files.prototxt import (
    DEEPEST,
    Node,
    filled_in,
    integer,
    parse,
    quoted,
    read_text,
    render,
    unquoted,
)

TEXT = """name: "a" 'b'  # a comment: { "
layer {
  top: "x", top: "y";
  inner < value: -1.5e+3 > list: [1, 2,
    3] empty: []
}
last: [{ a: 1 }, { b: TRUE }]
"""


def told(node: Node) -> list:
    """Names, values and lines, also of nested messages."""
    return [(f.name, told(f.value) if isinstance(f.value, Node) else f.value, f.line) for f in node.fields]


WANTED = [
    ("name", "\"a\" 'b'", 1),
    ("layer", [
        ("top", '"x"', 3), ("top", '"y"', 3),
        ("inner", [("value", "-1.5e+3", 4)], 4),
        ("list", "1", 4), ("list", "2", 4), ("list", "3", 5),
    ], 2),
    ("last", [("a", "1", 7)], 7),
    ("last", [("b", "TRUE", 7)], 7),
]  # fmt: skip


def test_a_text_as_a_tree_and_back():
    tree = parse(TEXT)
    assert told(tree) == WANTED and told(parse(render(tree))) == WANTED
    layer = not_none(tree.node("layer"))
    assert (layer.line, layer.values("top"), layer.value("top"), tree.value("name")) == (
        2,
        ["x", "y"],
        "x",
        "ab",
    )
    assert (layer.value("gone", "7"), layer.has("inner"), layer.has("gone"), tree.node("gone")) == (
        "7",
        True,
        False,
        None,
    )
    assert [n.value("a") for n in tree.nodes("last")] == ["1", ""]
    with raises(CaffeValueError, "prototxt, line 7: last: expected a value, got a message in braces"):
        tree.values("last")
    with raises(CaffeValueError, "line 1: name: expected a message in braces, got \"a\" 'b'"):
        tree.nodes("name")
    less = layer.without("top", "list")
    assert [f.name for f in less.fields] == ["inner"] and less.line == 2
    less.add("more", "1")
    less.add("node", Node(9))
    assert told(less)[1:] == [("more", "1", 2), ("node", [], 9)]


def test_templates():
    """`$NAME$` or `$NAME`; the error for a missing value has its line; comments do not count."""
    text = "a: $X$$Y\nb: 1 # $Z\n\nc: $W$ $V\nd: $W"
    with raises(
        CaffeValueError, r"^net: a template: give replace=\{name: value\} for W \(line 4\), V \(line 4\)$"
    ):
        filled_in(text, {"X": 3, "Y": "four"}, "net")
    with raises(CaffeValueError, r"for X \(line 1\), Y \(line 1\), W \(line 4\)"):
        filled_in(text, {"V": 0}, "net")
    given = {"X": 3, "Y": "four", "W": "$X", "V": ""}
    assert filled_in(text, given, "net") == "a: 3four\nb: 1 # $Z\n\nc: $X \nd: $X"
    assert filled_in("a: 1", {}, "net") == "a: 1"
    braces = 'a: ${X} b: "${Y}/list" c: ${Y}'
    assert filled_in(braces, given, "net") == 'a: 3 b: "four/list" c: four'
    with raises(CaffeValueError, r"for Y \(line 2\)$"):
        filled_in(f'"${{Y}}"\n{braces}', {"X": 3}, "net")
    assert filled_in('b: "${Y}/list"', {}, "net") == 'b: "${Y}/list"'


def test_binary_files_are_none(tmp_path):
    path = tmp_path / "net"
    for size, binary in ((0, True), (65535, True), (65536, False)):
        path.write_bytes(b"#" * size + b"\0")
        if binary:
            with raises(CaffeValueError, "net: not a prototxt: it is a binary file"):
                read_text(path)
        else:
            assert len(read_text(path)) == size + 1
    path.write_bytes(b"a: '\xff$B$'")
    assert read_text(path, {"B": 1}) == "a: '\ufffd1'"


def test_as_deep_as_it_may_be():
    def nested(depth):
        return "a {" * depth + "}" * depth

    assert render(parse(nested(DEEPEST - 1))).count("{") == DEEPEST - 1
    with raises(CaffeValueError, f"more than {DEEPEST} messages within each other"):
        parse(nested(DEEPEST))


@pytest.mark.parametrize(
    "text",
    [
        r'"\345\215\267\347\247\257"', r"'\xe5\x8d\xb7'", r"""'\xe5' "\215" '\xb7'""", r'"\u5377\U00007a4f"',
        r'"\a\b\f\n\r\t\v"', r'"\\ \""', r"'\'\"'", r'"\\x41 \\101 \101\60x"', r'"\x4" "1"', '"卷 \\t 积"',
        '"plain" "er"',
    ],
)  # fmt: skip
def test_strings_as_protobuf_reads_them(text):
    message = StringValue()
    text_format.Parse(f"value: {text}", message)
    assert parse(f"value: {text}").value("value") == message.value


def test_a_string_that_is_no_text():
    with raises(CaffeValueError, r"file, line 2: name: .* can't decode byte 0xff"):
        parse('\nname: "a\\xff"', "file").value("name")


@pytest.mark.parametrize(
    "text, wanted", [("03", 3), ("017", 15), ("-012", -10), ("0x1f", 31), ("0", 0), ("-7", -7)]
)
def test_integers_as_protobuf_reads_them(text, wanted):
    message = Int64Value()
    text_format.Parse(f"value: {text}", message)
    assert integer(text) == wanted == message.value


@pytest.mark.parametrize("text", ["08", "1.5", "0o7", "", "x", "1_000"])
def test_integers_that_are_none(text):
    with pytest.raises(ValueError):
        integer(text)


@pytest.mark.parametrize("text", ["", "a", 'a"b', "a\\b", '\\"', "卷\n\t积"])
def test_quotes(text):
    assert unquoted(quoted(text)) == text
    assert unquoted(f"'{'x' * 3}' \"y\"") == "xxxy" and unquoted("word") == "word"


@pytest.mark.parametrize(
    "text, said",
    [
        ("a", "line 1: expected ':' or '{' after 'a', found 'the end of the text'"),
        ("\n1a: 1", "line 2: expected the name of a field, found '1a'"),
        ("a: }", "line 1: expected a value, found '}'"),
        ("a: 1\n\nb: =", "line 3: expected a value, found '='"),
        ("a {\n b: 1 >", "line 2: expected the name of a field, found '>'"),
        ("a {\n b {\n }\n", "line 4: the text ends inside of what begins at line 1"),
        ("a: 'x", "line 1: a string without its end"),
        ('a: 1\nb: "x\n"', "line 2: a string without its end"),
        ("a: [1 2]", "line 1: expected ',' or ']' in the list of 'a', found '2'"),
        ("a " + "b" * 50, f"after 'a', found '{'b' * 40}'"),
        ("?" * 50 + ": 1", f"found '{'?' * 40}'"),
    ],
)
def test_what_is_no_prototxt(text, said):
    with pytest.raises(CaffeValueError) as raised:
        parse(text, "net")
    assert str(raised.value).startswith("net, line ") and str(raised.value).endswith(said)


ESCAPES = [
    "\\\\",
    "\\n",
    "\\x4",
    "\\x41",
    "\\x414",
    "\\7",
    "\\101",
    "\\1018",
    "\\u00e9",
    "\\U0001f600",
    "\\'",
    "\\q",
]
ESCAPES += ["a", "x1", "é", "0", "n", "\\303\\251", "\\xc3\\xa9"]


@pytest.mark.filterwarnings("ignore")  # Python's, of \\q
def test_escapes_are_protobuf_s():
    dice = random.Random(3)
    for _ in range(3000):
        text = "".join(dice.choice(ESCAPES) for _ in range(dice.randint(1, 6)))
        try:
            wanted = CUnescape(text).decode()
        except ValueError:
            with pytest.raises(ValueError):
                unquoted(f'"{text}"')
        else:
            assert unquoted(f'"{text}"') == wanted, text


@pytest.mark.parametrize(
    "text", ["\\\\" * 200_000, "\\x41" * 100_000, "\\\\x" * 100_000, "a" * 400_000 + "\\n"]
)
def test_the_time_for_escapes_is_linear(text):
    began = time.process_time()
    unquoted(f'"{text}"')
    assert time.process_time() - began < 5

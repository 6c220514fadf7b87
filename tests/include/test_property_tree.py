"""boost's property tree out of JSON, by the toolkit's own headers."""

import json
import subprocess

import pytest
from conftest import ROOT

PROGRAM = r"""
#include <iostream>
#include <sstream>

#include "boost/property_tree/json_parser.hpp"

using namespace boost::property_tree;

// Each node on a line: its depth, key and text.
void Print(const ptree& node, int depth) {
  for (basic_ptree<std::string, std::string>::const_iterator at = node.begin(); at != node.end(); ++at) {
    std::cout << depth << '|' << at->first << '|' << at->second.data() << '\n';
    Print(at->second, depth + 1);
  }
}

template <typename Body>
void Try(const char* what, Body body) {
  std::cout << what << ": ";
  try {
    std::cout << body() << '\n';
  } catch (const ptree_error& error) {
    std::cout << error.what() << '\n';
  }
}

// A tree by hand: what it answers.
void Parts() {
  ptree tree, one("text");
  tree.put("a.b", 0.1f);
  tree.put("a.b", 3);
  tree.add("a.b", true);
  tree.add("a.b", 2.5);
  tree.put_child("a.c", one).put("d", "e");
  tree.add_child("a.c", one);
  Print(tree, 0);
  const ptree& a = tree.get_child("a");
  std::cout << a.size() << a.count("b") << a.count("c") << a.count("d") << a.empty() << one.empty() << '\n';
  Try("path", [&] { return tree.get<int>("a.x"); });
  Try("no int", [&] { return tree.get<int>("a.c"); });
  Try("no bool", [&] { return tree.get<bool>("a.c"); });
  Try("otherwise", [&] { return tree.get("a.x", 7) + tree.get("a.c", 70) + tree.get("a.b", 700); });
  ptree words;
  for (const char* word : {"true", "false", "1", "0"}) {
    words.put("w", word);
    Try(word, [&] { return words.get<bool>("w"); });
  }
  Try("itself", [&] { return tree.get_child("").size(); });
  one.put("under", 1);
  std::ostringstream out;
  Try("text and children", [&] { return write_json(out, one), "written"; });
  Try("text alone", [&] { return write_json(out, ptree("text")), "written"; });
  one.data() = "";
  Try("children alone", [&] { return write_json(out, one), "written"; });
  Try("a shut stream", [&] { return out.setstate(std::ios::badbit), write_json(out, one), "written"; });
  Try("no place", [&] { return write_json(std::string("/nowhere/x.json"), one), "written"; });
  Try("no file", [&] { return read_json(std::string("/nowhere/x.json"), one), "read"; });
  tree.clear();
  std::cout << tree.empty() << tree.data().empty() << '\n';
}

int main(int count, char** arguments) {
  ptree tree;
  if (count == 1) return Parts(), 0;
  try {
    read_json(std::string(arguments[1]), tree);
  } catch (const json_parser_error& error) {
    std::cout << "error: " << error.what() << '\n';
    return 0;
  }
  if (count == 2) return Print(tree, 0), 0;
  write_json(std::cout, tree, arguments[2] == std::string("pretty"));
}
"""


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    folder = tmp_path_factory.mktemp("json")
    (folder / "reader.cpp").write_text(PROGRAM)
    command = [
        "g++",
        "-std=c++17",
        "-Wall",
        "-Werror",
        f"-I{ROOT}/include",
        f"-I{ROOT}/include/legacy",
        "reader.cpp",
    ]
    subprocess.run([*command, "-o", "reader"], cwd=folder, check=True)

    def run(text, *more):
        (folder / "x.json").write_bytes(text)
        command = [folder / "reader", *(["x.json"] if text else []), *more]
        return subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout.decode()

    return run


def lines(value, depth=0):
    """What the program prints, by Python's reader."""
    for key, one in value.items() if isinstance(value, dict) else (("", one) for one in value):
        inner = isinstance(one, (dict, list))
        yield f"{depth}|{key}|{'' if inner else one}"
        yield from lines(one, depth + 1) if inner else ()


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "1", "b": {"c": "x y", "c": "again"}, "": []}',
        ' [ "one" , ["two", {}], {"three" : "3"} ]\n',
        r'{"quoted": "\" \\ \/ \b \f \t", "code": "\u0041\u00e9\u20ac\ud83d\ude00"}',
        '{"bytes": "é€😀"}',
        r'["\u007f\u0080\u07ff\u0800\uffff\ud800\udc00\udbff\udfff", "\ud7ff\ue000", "\t"]',
    ],
)
def test_texts_as_pythons_reader_reads_them(reader, text):
    expected = json.loads(text, object_pairs_hook=lambda pairs: pairs and _Pairs(pairs))
    assert reader(text.encode()).split("\n")[:-1] == list(lines(expected))


class _Pairs(dict):
    """An object with all of its members, equal keys included."""

    def __init__(self, pairs):
        super().__init__(pairs)
        self._pairs = pairs

    def items(self):
        return self._pairs


def test_numbers_and_words_stay_as_they_stand(reader):
    expected = ["0||1", "0||-2.50e+3", "0||true", "0||false", "0||null"]
    assert reader(b"[1, -2.50e+3, true, false, null]").splitlines() == expected


@pytest.mark.parametrize(
    "text, said",
    [
        (b'{\n"a": 1,\n}', "x.json(3): expected key string"),
        (b'{"a" 1}', "x.json(1): expected ':'"),
        (b'{"a": 1 "b": 2}', "x.json(1): expected '}' or ','"),
        (b"[1 2]", "x.json(1): expected ']' or ','"),
        (b'["a\n"]', "x.json(1): unterminated string"),
        (b'["a', "x.json(1): unterminated string"),
        (rb'["\x"]', "x.json(1): invalid escape sequence"),
        (rb'["\u12g4"]', "x.json(1): invalid escape sequence"),
        (b"{} {}", "x.json(1): garbage after data"),
        (b"nothing", "x.json(1): expected value"),
        (b" ", "x.json(1): expected value"),
    ],
)  # fmt: skip
def test_faults_are_said_with_their_line(reader, text, said):
    assert reader(text) == f"error: {said}\n"


def test_texts_as_pythons_writer_writes_them(reader):
    """Boost puts a backslash before a slash, too, and has an empty text for an empty object."""
    value = {"a": ["1", "2"], "b": {"c": '\x01\x1f \b\f\n\r\t\\"~', "d": "x"}, "e": "é", "f": [["g"]]}
    for pretty, way in (("pretty", {"indent": 4}), ("compact", {"separators": (",", ":")})):
        wanted = json.dumps(value, ensure_ascii=False, **way).replace("\\u001f", "\\u001F")
        assert reader(json.dumps(value).encode(), pretty) == wanted + "\n" * (pretty == "pretty")
    assert reader(b'{"a/b": "", "c": [], "d": {}}', "compact") == r'{"a\/b":"","c":"","d":""}'


def test_a_tree_by_hand(reader):
    assert reader(b"").splitlines() == [
        *("0|a|", "1|b|3", "1|b|true", "1|b|2.5", "1|c|text", "2|d|e", "1|c|text"),
        "532001",
        "path: No such node (a.x)",
        "no int: conversion of data to type failed: text",
        "no bool: conversion of data to type failed: text",
        "otherwise: 80",
        *("true: 1", "false: 0", "1: 1", "0: 0"),
        "itself: 1",
        "text and children: ptree contains data that cannot be represented in JSON format",
        "text alone: ptree contains data that cannot be represented in JSON format",
        "children alone: written",
        "a shut stream: write error",
        "no place: /nowhere/x.json: cannot open file",
        "no file: /nowhere/x.json: cannot open file",
        "11",
    ]

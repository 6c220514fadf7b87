"""boost's property tree out of JSON, by the toolkit's own headers."""

import json
import subprocess

import pytest
from conftest import ROOT

PROGRAM = r"""
#include <iostream>

#include "boost/property_tree/json_parser.hpp"

using namespace boost::property_tree;

// Each node on a line: its depth, key and text.
void Print(const ptree& node, int depth) {
  for (basic_ptree<std::string, std::string>::const_iterator at = node.begin(); at != node.end(); ++at) {
    std::cout << depth << '|' << at->first << '|' << at->second.data() << '\n';
    Print(at->second, depth + 1);
  }
}

int main(int, char** arguments) {
  ptree tree;
  try {
    read_json(std::string(arguments[1]), tree);
  } catch (const json_parser_error& error) {
    std::cout << "error: " << error.what() << '\n';
    return 0;
  }
  Print(tree, 0);
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

    def run(text):
        (folder / "x.json").write_bytes(text)
        return subprocess.run(
            [folder / "reader", "x.json"], cwd=folder, capture_output=True, check=True
        ).stdout.decode()

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
        (b"", "x.json(1): expected value"),
    ],
)  # fmt: skip
def test_faults_are_said_with_their_line(reader, text, said):
    assert reader(text) == f"error: {said}\n"

"""C++ is read by one lexer and one tree. A further reader, or a further model of a variable, needs a reason here."""

import ast
import re

from conftest import ROOT

ROOMS = ("tools/cuda", "tools/new_layer")
# Who asks tree-sitter for a tree, and of what.
PARSED = {
    "tools/cuda/launches.py": "a file's launches",
    "tools/cuda/body.py": "a function's body, for all questions about it",
    "tools/cuda/expanding.py": "a body into which functions were put",
    "tools/cuda/reshaping.py": "a body whose end was put into an if",
    "tools/cuda/shifts.py": "one expression with shifts",
    "tools/new_layer/host_code.py": "the host function around a launch, and the launch's expressions",
}
# Classes for variables, and for what is known of a name.
MODELS = {
    "tools/cuda/outline.py: Parameter": "of a function's head",
    "tools/cuda/declaration.py: Declarator": "of a declaration, with its stars and sizes",
    "tools/cuda/declaration.py: Variables": "of one declaration",
    "tools/cuda/variables.py: Variable": "of a function: guard, phases, warps, strides, host code around a launch",
    "tools/cuda/uses.py: Uses": "all of a body, with their uses and changes",
    "tools/cuda/kept.py: KeptVariables": "those that have a place for each thread",
    "tools/cuda/number_types.py: Names": "which names are whole numbers, also in macros",
    "tools/cuda/unit_names.py: UnitNames": "what a unit's names may do",
    "tools/cuda/steps.py: VolatileName": "volatile memory of a block",
    "tools/new_layer/declared.py: Names": "of a file, as launchers use them",
    "tools/new_layer/host_code.py: HostVariable": "what a launcher is told of such a variable: type, value, changes",
    "tools/new_layer/index_types.py: ValueUses": "of one template's type",
    "tools/new_layer/symbols.py: Symbol": "of the GPU, which host code fills",
    "tools/new_layer/structs.py: Field": "of a struct that C gives by its parts",
}
# Calls of re in each room. They read words and names; what is declared comes from tokens.
MOST_PATTERNS = {"tools/cuda": 60, "tools/new_layer": 118}
OF_PATTERNS = ("search", "match", "fullmatch", "findall", "finditer", "sub", "split", "compile")


def modules(room: str):
    return {
        str(file.relative_to(ROOT)): ast.parse(file.read_text())
        for file in sorted((ROOT / room).glob("*.py"))
    }


def imports(tree: ast.Module, name: str) -> bool:
    return any(
        isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]
        for node in ast.walk(tree)
    )


def test_who_asks_for_a_tree():
    found = {
        file
        for room in ROOMS
        for file, tree in modules(room).items()
        if imports(tree, "parse")
        or any(isinstance(n, ast.Import) and n.names[0].name == "tree_sitter" for n in tree.body)
    }
    assert found == PARSED.keys()


def test_the_models_of_a_variable():
    told = re.compile(r"Variable|Number|Names?\Z|Declarator|Symbol|Uses|Field|Parameter")
    found = {
        f"{file}: {node.name}"
        for room in ROOMS
        for file, tree in modules(room).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and told.search(node.name) and file != "tools/cuda/names.py"
    }
    assert found == MODELS.keys()


def test_text_is_not_read_by_more_patterns():
    counts = {
        room: sum(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.func.attr in OF_PATTERNS
            for tree in modules(room).values() for node in ast.walk(tree)
        )
        for room in ROOMS
    }  # fmt: skip
    assert all(counts[room] <= most for room, most in MOST_PATTERNS.items()), counts

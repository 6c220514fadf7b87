"""A notebook's cells: read as IPython reads them, and run."""

import ast
import json
import random

import pytest
from support.typed import not_none

from cuffi.nets.python2 import Tree
from cuffi.nets.python2.notebook import NotebookError, translated

# Pieces of cells, of whole lines: statements, texts and brackets over several lines, and lines of IPython's own.
PIECES = [
    "x = 1",
    "print(x)",
    "if x:\n    y = 2",
    "if x:\n    !ls\n    %cd a",
    "for i in x:\n    %time f(i)\n    z = i",
    "%matplotlib inline",
    "%time f(x)",
    "!ls -l",
    "!echo '%d' \"a\"",
    "x = !ls *.py",
    "a, b = !ls",
    "x = %pwd",
    "x.y = %env A",
    "x[0] = !ls",
    "  # % comment",
    "x = 5 % 3",
    "x = (5\n  % 3)",
    "x = [1,\n  -5]",
    'text = """top:\n%s\n!end""" % x',
    "t = '''\n%matplotlib\n'''",
    "t = 'a\\\n%d' % 3",
    "x = 5 \\\n  % 3",
    "f('=%d' % x)",
    "print('%' + '!')",
    "x = '!ls'",
    "x = '''a''' # '''",
    "def f(a):\n    '''doc\n    %s\n    '''\n    return a",
    "y = {1: 2,\n # )\n 3: 4}",
    "z = f(a='%s',\n      b=1)",
    "!ls \\\n  -l",
    "%run a.py \\\n b",
    "x != 5",
    "x %= 2",
    "print('it''s', \"%s\")",
    "s = r'a\\'b'",
    "@f\ndef g(): pass",
]
FIRST = [
    "%%bash\nls\necho '''",
    "%%time\nx = 1\n%cd a",
    "%%writefile a.py\nx = '",
    "\n%%capture out\nprint(1)",
]


def by_ipython(cell: str) -> list:
    """What IPython makes of a cell: the calls of its own commands, and all other code."""
    manager = pytest.importorskip("IPython.core.inputtransformer2").TransformerManager()
    return told(ast.parse(manager.transform_cell(cell)))


_OWN = {
    "run_line_magic": "__magic__",
    "system": "__shell__",
    "getoutput": "__lines__",
    "run_cell_magic": "__cell__",
}


class _Named(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call):
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("__magic__", "__shell__", "__lines__", "__cell__"):
            words = [" ".join(ast.literal_eval(arg).split()) for arg in node.args]
        elif name in _OWN:
            given = [ast.literal_eval(arg) for arg in node.args]
            words = [given[0]] if name in ("system", "getoutput") else [" ".join(given[:2]), *given[2:]]
            words = [" ".join(word.split()) for word in words]
        else:
            return node
        return ast.Constant(repr((_OWN.get(name, name), *words)))


def told(tree: ast.Module) -> list[str]:
    return [ast.dump(node) for node in _Named().visit(tree).body]


def cells(count: int) -> list[str]:
    draw = random.Random(0)
    alone = [*PIECES, *FIRST]
    return alone + ["\n".join(draw.choices(PIECES, k=draw.randint(2, 5))) for _ in range(count)]


@pytest.mark.parametrize("count", [300])
def test_cells_are_read_as_ipython_reads_them(count):
    for cell in cells(count):
        assert told(ast.parse(translated(cell))) == by_ipython(cell), cell


def test_lines_keep_their_numbers():
    for cell in cells(50):
        if not cell.lstrip().startswith("%%"):
            assert translated(cell).count("\n") == cell.count("\n")


def book(path, *texts: str, **metadata):
    code = [{"cell_type": "code", "source": text} for text in texts]
    path.write_text(json.dumps({"cells": code, "metadata": metadata, "nbformat": 4, "nbformat_minor": 0}))
    return path


@pytest.fixture
def run(tmp_path, monkeypatch):
    """run(cell, ...): the names after the cells have run."""
    monkeypatch.chdir(tmp_path)

    def run(*texts: str, **metadata) -> dict:
        names = {"__name__": "__main__"}
        Tree([str(tmp_path)], {}).run(book(tmp_path / "a.ipynb", *texts, **metadata), names)
        return names

    return run


RAN = [
    (["x = !printf 'a\\nb\\n'", "y = x[1] + x.n"], {"x": ["a", "b"], "y": "ba\nb"}),
    (["n = 'c'\nx = !echo {n} $n"], {"x": ["c c"]}),
    (["%%bash\necho hi > o", "x = open('o').read()"], {"x": "hi\n"}),
    (["%%writefile m.py\ny = 7 / 2", "%run m", "x = y"], {"x": 3}),
    (["%mkdir d\n%cd d\nx = %pwd\n%cd .."], {}),
    (["%time x = 7 / 2", "%%timeit -n 1\ny = x"], {"x": 3, "y": 3}),
    (["print 'old'", "x = 7 / 2"], {"x": 3}),
    (["x = [y for y in 'ab']", "z = y"], {"z": "b"}),
    ([">>> x = 3\n>>> for i in range(2):\n...     x += i"], {"x": 4}),
    (["get_ipython().magic('cd .')\nx = 1\nx?\n?x"], {"x": 1}),
]


@pytest.mark.parametrize(("texts", "values"), RAN)
def test_commands_do_what_ipython_s_do(run, texts, values):
    names = run(*texts)
    assert {name: names[name] for name in values} == values


def test_shell_lines_write_to_the_output(run, capsys):
    run("!echo one\nprint 'two'")
    assert capsys.readouterr().out == "one\ntwo\n"


@pytest.mark.parametrize(("version", "value"), [("2.7.6", 3), ("3.8.1", 3.5)])
def test_the_notebook_says_its_language(run, version, value):
    assert run("x = 7 / 2", language_info={"version": version})["x"] == value


def test_a_cell_that_cannot_be_read_is_named_and_the_others_run(run, tmp_path, capsys):
    with pytest.raises(NotebookError, match=r"a\.ipynb: cells 2 could not be read, and were left out"):
        run("x = 1", "this is no python", "open('o', 'w').write(str(x))")
    assert (tmp_path / "o").read_text() == "1"
    assert "a.ipynb, cell 2: left out: invalid syntax" in capsys.readouterr().err


def test_an_error_names_the_cell_and_its_line(run):
    with pytest.raises(ZeroDivisionError) as error:
        run("x = 1", "y = 0\nz = x / y")
    frame = next(entry for entry in error.traceback if "a.ipynb" in str(entry.frame.code.raw.co_filename))
    assert str(frame.frame.code.raw.co_filename).endswith("a.ipynb, cell 2") and not_none(frame.lineno) == 1


def test_an_unknown_command_is_told(run, capsys):
    run("%nothing at all", "%%cython\ndef f(): pass", "%%html\n<b>")
    told = capsys.readouterr().err
    assert (
        "%nothing is a command of IPython that is not here" in told
        and "%%cython" in told
        and "html" not in told
    )

"""Files of Python 2 get what numpy 1.10 gave. The values are those that Python 2.7.18 with numpy 1.10.4 printed."""

import builtins
import os
import sys

import numpy as np
import pytest
from support import python_with_torch

from cuffi.nets.python2 import old_numpy
from cuffi.nets.python2.libraries import library

FILES = [
    ('from numpy import *\n'
     'out = [max(1.5, 0), min(2, 1), round(2.5), abs(-2), pow(2, 3), sum([1, 2]), any([0, 1])]',
     [1.5, 1, 3.0, 2, 8, 3, True]),
    ('from numpy import *\n'
     'out = [max([1, 2], [3]), min(3, 2, 1), type(pow(2, 2)).__name__, bool(1) is True, float_(1), \n'
     '      product([2, 3])]',
     [[3], 1, 'int', True, 1.0, 6]),
    ('from numpy import *\n'
     "out = [Inf > 1, alltrue([1, 0]), typeDict['float32'].__name__, msort(array([3, 1])).tolist(), \n"
     '      rank([[1]]), random.rand(0).tolist()]',
     [True, False, 'float32', [1, 3], 2, []]),
    ('a = np.zeros((2, 2))\n'
     'a[0, 1] = np.array([5.0])\n'
     'a[1][0] = np.array([[6.0]])\n'
     'out = a.tolist()',
     [[0.0, 5.0], [6.0, 0.0]]),
    ('a = np.zeros(3)\n'
     'a[1] += np.array([2.0])\n'
     'a[2] -= np.array([[1.0]])\n'
     'out = a.tolist()',
     [0.0, 2.0, -1.0]),
    ('a = np.zeros(3, int)\n'
     'a[0] = np.array([2.7])\n'
     'out = a.tolist()',
     [2, 0, 0]),
    ('m = np.array([2.5])\n'
     "out = [float(m), int(m), '%.2f %s' % (m, 'x'), '%d' % m, round(m), range(np.array([2]))]",
     [2.5, 2, '2.50 x', '2', 3.0, [0, 1]]),
    ('out = [bool(np.zeros(2) == np.zeros(3)), bool(np.zeros(2) != np.zeros(3)), \n'
     "      bool(np.zeros(2) == None), bool(np.zeros(3) == 'a')]",
     [False, True, False, False]),
    ('a = np.arange(5)\n'
     'out = a[np.array([True, False, True])].tolist()',
     [0, 2]),
    ('a = np.arange(5)\n'
     'a[np.array([True, False, True])] = 9\n'
     'out = a.tolist()',
     [9, 1, 9, 3, 4]),
    ('a = np.arange(5)\n'
     'a[np.array([False, True, True])] += 10\n'
     'out = a.tolist()',
     [0, 11, 12, 3, 4]),
    ('a = np.arange(12).reshape(3, 4)\n'
     'out = [a[[[0, 1], [1, 2]]].tolist(), a[[slice(0, 2), 1]].tolist()]',
     [[1, 6], [1, 5]]),
    ('a = np.arange(12).reshape(3, 4)\n'
     'a[[[0, 1], [1, 2]]] = 0\n'
     'out = a.sum()',
     59),
    ('a = np.zeros(2, np.uint8)\n'
     'a[0] = 300\n'
     'a[1] = -1\n'
     'out = a.tolist()',
     [44, 255]),
    ('a = np.arange(5)\n'
     'i = 3.0\n'
     'out = [a[i], a[np.array([2])[0]], [7, 8, 9][np.array([2])]]',
     [3, 2, 9]),
    ('import math\n'
     'out = [math.floor(7.5) / 2, math.ceil(6.5) / 2, math.exp(np.array([0.0])), \n'
     '      math.sqrt(np.array([[4.0]]))]',
     [3.5, 3.5, 1.0, 2.0]),
    ('from math import floor, ceil\n'
     'out = [floor(7) / 2, ceil(7) / 2]',
     [3.5, 3.5]),
    ('out = [x.tolist() for x in np.unique(np.array([[2, 1], [2, 3]]), return_index=True, \n'
     '      return_inverse=True)]',
     [[1, 2, 3], [1, 0, 3], [1, 0, 1, 2]]),
    ('out = np.linalg.lstsq(np.array([[1., 0.], [0., 1e-17]]), np.array([1., 1e-17]))[0].tolist()',
     [1.0, 0.0]),
    ('out = np.array([1, 2], copy=False, dtype=np.float32).tolist()',
     [1.0, 2.0]),
    ('d = {}\n'
     "d['a'] = [1]\n"
     "d['a'] += [2]\n"
     "d['a'] *= 2\n"
     'x = [1, 2]\n'
     'x[0] <<= 3\n'
     'x[1:] = [5, 6]\n'
     'out = [d, x]',
     [{'a': [1, 2, 1, 2]}, [8, 5, 6]]),
    ('class A(object): pass\n'
     'a = A()\n'
     'a.b = A()\n'
     'a.b.c = np.arange(4.0)\n'
     'a.b.c[1:] /= 2\n'
     'a.b.c /= 2\n'
     'out = a.b.c.tolist()',
     [0.0, 0.25, 0.5, 0.75]),
    ('x = 7\n'
     'x %= 4\n'
     "out = [x, 7 % 4, '%s' % [1], '%(a)d' % {'a': np.array([3])[0]}]",
     [3, 3, '[1]', '3']),
    ('out = map(float, np.array([[1.5], [2.5]])) + map(int, np.array([[1], [2]]))',
     [1.5, 2.5, 1, 2]),
    ('a = np.zeros((2, 3))\n'
     'a[:, np.array([True, False, True])] = 1\n'
     'a[..., 1] = np.array([[4.], [5.]])[:, 0]\n'
     'out = a.tolist()',
     [[1.0, 4.0, 1.0], [1.0, 5.0, 1.0]]),
    ('x = np.array([3])\n'
     "out = [np.arange(5)[:x].tolist(), [1, 2, 3, 4][:x], 'ab' * 2]",
     [[0, 1, 2], [1, 2, 3], 'abab']),
    ('a = np.array([[1, 2], [3, 4]])\n'
     'n = (1, 0)\n'
     'out = [a[n], a[list(n)].tolist(), a[n,].tolist(), a[1, ...].tolist(), a[None][0, 0].tolist()]',
     [3, [[3, 4], [1, 2]], [[3, 4], [1, 2]], [3, 4], [1, 2]]),
    ('before = np.get_printoptions()\n'
     "np.set_printoptions(threshold='nan')\n"
     'one = str(np.zeros(3000, int))\n'
     'np.set_printoptions(threshold=np.nan, precision=3)\n'
     'two = str(np.zeros(3000, int))\n'
     'np.set_printoptions(**before)\n'
     "out = ['...' in one, one.count('0'), '...' in two, '...' in str(np.zeros(3000, int))]",
     [False, 3000, False, True]),
]  # fmt: skip

# What Python 2.7.18 with numpy 1.10.4 and with 1.16.6 printed.
NUMBERS = [
    ('p[0] + 100', ('int64', 300)),
    ('p[0] * 2', ('int64', 400)),
    ('p[0] - 201', ('int64', -1)),
    ('201 - p[0]', ('int64', 1)),
    ('p[0] + p[1]', ('uint8', 44)),
    ('-1 * p[0]', ('int64', -200)),
    ('p[0] ** 2', ('int64', 40000)),
    ('p[0] << 8', ('int64', 51200)),
    ('p[0] | 256', ('int64', 456)),
    ('p[0] // 7 + 300', ('int64', 328)),
    ('p[0] % 300', ('int64', 200)),
    ('p + 300', ('uint16', [500, 400, 307])),
    ('p + -1', ('int16', [199, 99, 6])),
    ('p * 256', ('uint16', [51200, 25600, 1792])),
    ('p - 1', ('uint8', [199, 99, 6])),
    ('p + np.int64(1)', ('uint8', [201, 101, 8])),
    ('p * 1.5', ('float64', [300.0, 150.0, 10.5])),
    ('p * np.float32(1)', ('float32', [200.0, 100.0, 7.0])),
    ('np.int8(127) + 1', ('int64', 128)),
    ('np.array([100], np.int8) + 27', ('int8', [127])),
    ('np.array([100], np.int8) + 200', ('int16', [300])),
    ('np.array([1], np.int32) * np.int64(3)', ('int32', [3])),
    ('np.uint64(1) + 1', ('float64', 2.0)),
    ('np.float32(0.1) + 0.1', ('float64', 0.20000000149011612)),
    ('np.float32(0.1) * 3', ('float64', 0.30000000447034836)),
    ('np.float32(1) / 3', ('float64', 0.3333333333333333)),
    ('np.float16(1) * 2.5', ('float64', 2.5)),
    ('f + np.float64(0.1)', ('float32', [0.20000000298023224, 2.0999999046325684])),
    ('f * np.sqrt(2.0)', ('float32', [0.1414213627576828, 2.8284270763397217])),
    ('f + 1e300', ('float64', [1e+300, 1e+300])),
    ('f + 70000', ('float64', [70000.10000000149, 70002.0])),
    ('f * 1j', ('complex64', [0.10000000149011612j, 2j])),
    ('f + np.array(0.1)', ('float32', [0.20000000298023224, 2.0999999046325684])),
    ('np.float32(0.1) == 0.1', ('bool', False)),
    ('f == np.float64(0.1)', ('bool', [True, False])),
    ('f < np.float64(0.1)', ('bool', [False, False])),
    ('np.float32(0.1) > 0.1', ('bool', True)),
    ('np.maximum(f, np.float64(0))', ('float32', [0.10000000149011612, 2.0])),
    ('np.maximum(p, 300)', ('uint16', [300, 300, 300])),
    ('np.add(p[0], 100)', ('int64', 300)),
    ('np.add.reduce(p)', ('uint64', 307)),
    ('np.divide(7, 2)', ('int64', 3)),
    ('np.divide(p, 2)', ('uint8', [100, 50, 3])),
    ('np.divide(7.0, 2)', ('float64', 3.5)),
    ('sum(p)', ('int64', 307)),
    ('sum([p[0], p[1]], 1)', ('int64', 301)),
    ('divmod(p[0], 300)[1]', ('int64', 200)),
    ('pow(p[0], 2)', ('int64', 40000)),
    ('np.delete(np.arange(4), [True, False, True, False])', ('int64', [2, 3])),
    ('np.histogram([1, 2, 3], 2, normed=True)[0]', ('float64', [0.3333333333333333, 0.6666666666666666])),
    ("np.percentile([1, 2, 3, 4], 50, interpolation='lower')", ('int64', 2)),
    ('np.array([300, -1], np.uint8)', ('uint8', [44, 255])),
    ('np.array([300, -1], dtype=np.uint8)', ('uint8', [44, 255])),
    ('np.sum(x for x in [1, 2])', ('int64', 3)),
    ('np.linalg.solve(np.stack([2 * np.eye(1)] * 3), np.ones((3, 1)))', ('float64', [[0.5], [0.5], [0.5]])),
    ('p.ptp()', ('uint8', 193)),
    ('(lambda a: [a.itemset(1, 9), a.itemset((0,), 8), a][2])(p.copy())', ('uint8', [8, 9, 7])),
    ("p.astype('<i2').newbyteorder('B')", ('int16', [-14336, 25600, 1792])),
]  # fmt: skip
PIXELS = "import numpy as np\np = np.array([200, 100, 7], np.uint8); f = np.array([0.1, 2], np.float32)\n"
ADDED = [
    ("s = 0\nfor v in p: s += v\nout = s", ("int64", 307)),
    ("s = p[0]\ns *= 3\ns -= 1\nout = s", ("int64", 599)),
    ("a = p.copy()\nb = a\na += 300\nout = b", ("uint8", [244, 144, 51])),
    ("a = f.copy()\nb = a\na *= np.float64(2)\nout = b", ("float32", [0.20000000298023224, 4.0])),
    ("a = p.copy()\na[1] += 200\nout = a", ("uint8", [200, 44, 7])),
    ("class A: pass\nA.s = p[0]\nA.s += 100\nout = A.s", ("int64", 300)),
    ("a = np.array(3, np.uint8)\nb = a\na += np.uint8(4)\nout = b", ("uint8", 7)),
    ("s = 'a'\ns += 'b'\nx = [1]\ny = x\nx += [2]\nout = [len(s), len(y)]", ("int64", [2, 2])),
    ("out = p.sum() / 2", ("float64", 153.5)),
    ("out = np.array([7], np.uint64) / np.array([2])", ("float64", [3.5])),
    ("out = np.array([7], np.uint64) / 2", ("uint64", [3])),
    ("out = np.bool_(True) / 2 + 0", ("int64", 0)),
    ("out = np.asarray(np.matrix([[7, 8]]) / 2)", ("int64", [[3, 4]])),
    ("a = np.matrix([[7, 8]])\na /= 2\nout = np.asarray(a)", ("int64", [[3, 4]])),
    ("m = np.ma.array([1, 2], mask=[0, 1])\nout = [m[1] * 2 is m[1], 2 - m[1] is m[1], m[0] * 2 is m[1]]",
     ("bool", [True, True, False])),
    ("m = np.ma.array([1, 2], mask=[0, 1])\nout = (m[1] + p).mask", ("bool", [True, True, True])),
    ("def g(a, s=0):\n    for v in a: s = s + v\n    return s\nout = g(p)", ("int64", 307)),
]  # fmt: skip


TEXTS = [
    ("out = [str(1.0 / 3), str(0.1 + 0.2), '%s %r' % (0.1 + 0.2, 0.5), '%(a)s' % {'a': 2.0 / 3},\n"
     "       str(1e16), str(3.0), str(7)]",
     ["0.333333333333", "0.3", "0.3 0.5", "0.666666666667", "1e+16", "3.0", "7"]),
    ("def str(x): return 'own'\ndef g(int): return int(2.5)\nout = [str(1), g(lambda x: x), map(str, [1])]",
     ["own", 2.5, ["own"]]),
    ("sys = 4\nout = map(eval, ['sys', '7 / 2'])", [4, 3]),
    ("out = map(str, [0.1 + 0.2, 1])", ["0.3", "1"]),
    ("x = 5\nd = {}\nexec 'z = x / 2' in d, {'x': 7}\nout = [eval('x / 2'), eval('7 / x', {'x': 2}), eval(' `x`'), \n"
     "      eval('lambda: 7 / 2')(), len([k for k in d if k == 'z'])]",
     [2, 3, "5", 3, 0]),
    ("def g(a):\n    b = 9\n    return eval('a / 2 + b')\nout = g(7)", 12),
    ("out = ['yes' if np.array([]) else 'no', not np.zeros(0), not np.ones(1)]\nif np.array([]) == []: out = 0",
     ["no", True, False]),
    ("out = ['abc'.encode('hex'), 'a'.encode('base64'), np.frombuffer('ab', np.uint8).tolist(), apply(max, (1, 2))]",
     ["616263", "YQ==\n", [97, 98], 2]),
    ("out = np.lib.pad(np.array([1, 2]), 1, 'edge').tolist()", [1, 1, 2, 2]),
]  # fmt: skip


def plain(value):
    """Lists of Python's numbers."""
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


@pytest.mark.parametrize(("text", "value"), FILES + TEXTS)
def test_a_file_gives_what_numpy_1_10_gave(text, value, run):
    assert plain(run("import numpy as np\n" + text, "if 0: print 'Python 2'\n")) == value


@pytest.mark.parametrize(("text", "value"), [(f"out = {text}", value) for text, value in NUMBERS] + ADDED)
@np.errstate(all="ignore")
def test_numbers_have_the_types_that_numpy_gave_them_before_2(text, value, run):
    got = np.asarray(run(PIXELS + text, "if 0: print 'Python 2'\n"))
    assert (got.dtype.name, got.tolist()) == value


def test_a_script_prints_numbers_as_numpy_did_before_2(tmp_path):
    (tmp_path / "s.py").write_text(
        "import numpy as np\nprint [np.float32(0.5), np.int64(3)], repr(np.bool_(1))\n"
    )
    command = [sys.executable, "-m", "cuffi.caffe", "s.py"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = python_with_torch.run(command, tmp_path, env)
    assert done.stdout == "[0.5, 3] True\n", done.stderr


def test_the_star_brings_no_builtin_that_numpy_added_later(run):
    got = set(run("from numpy import *\nout = dir()"))
    assert {n for n in got & set(dir(builtins)) if n[:2] != "__"} == {"all", "any", "sum"}
    given = set(np.__all__) & set(old_numpy.STAR) | set(old_numpy.names()) & set(old_numpy.STAR)
    assert given <= got and len(given) > 480


def test_pylab_brings_numpy_s_old_names_and_no_builtin(run):
    pytest.importorskip("matplotlib")
    got = run(
        "from pylab import *\nout = [max(2, 3), round(2.5), abs(-1), float_(1), sum([[1, 2]], 0)[1], plot.__name__]"
    )
    assert got == [3, 3.0, 1, 1.0, 2, "plot"]
    assert library("pylab").rank is np.ndim


def test_an_error_of_the_file_s_own_stays(run):
    for text, kind in (
        ("a = np.zeros(3)\na[0] = np.array([1, 2])", ValueError),
        ("a = np.zeros(3)\na[7]", IndexError),
        ("a = np.zeros(3)\na[np.array([False] * 4 + [True])]", IndexError),
        ("a = {}\na[1]", KeyError),
        ("a = [1]\na['x'] = 1", TypeError),
        ("out = '%d' % 'x'", TypeError),
    ):
        with pytest.raises(kind):
            run("import numpy as np\n" + text)

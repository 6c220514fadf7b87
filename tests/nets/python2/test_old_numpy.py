"""Files of Python 2 get what numpy 1.10 gave. The values are those that Python 2.7.18 with numpy 1.10.4 printed."""

import builtins

import numpy as np
import pytest

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


def plain(value):
    """Lists of Python's numbers."""
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


@pytest.mark.parametrize(("text", "value"), FILES)
def test_a_file_gives_what_numpy_1_10_gave(text, value, run):
    assert plain(run("import numpy as np\n" + text, "if 0: print 'Python 2'\n")) == value


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

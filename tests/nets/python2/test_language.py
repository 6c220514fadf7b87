"""The results of a converted file, compared with the output of Python 2.7.18 with numpy 1.11.3."""

import textwrap

import pytest

# A statement of Python 2 that sets `out`, and the value that 2.7.18 gave.
PRINTED = [
    ("out = [7 / 2, -7 / 2, 7 / 2.0, 7L / 2, 0777]", [3, -4, 3.5, 3, 511]),
    ("out = [round(x) for x in (0.5, 1.5, 2.5, -0.5, 2.675)]", [1.0, 2.0, 3.0, -1.0, 3.0]),
    ("out = [round(2.675, 2), round(1234.5, -2)]", [2.67, 1200.0]),
    ("out = map(None, [1, 2], [3, 4])", [(1, 3), (2, 4)]),
    ("out = [filter(lambda c: c > 'b', 'abcd'), filter(None, (0, 1, 2)), filter(None, [0, 3])]", ["cd", (1, 2), [3]]),
    ("d = {'a': 1}; out = [d.has_key('a'), d.keys() + d.values(), d.items()[0], sorted(d.iteritems())]",
     [True, ["a", 1], ("a", 1), [("a", 1)]]),
    ("out = [zip([1], [2])[0], range(3)[1:], xrange(3)[2], reduce(lambda a, b: a * b, [1, 2, 3])]",
     [(1, 2), [1, 2], 2, 6]),
    ("out = ['b', 'C', 'a']; out.sort(lambda a, b: cmp(a.lower(), b.lower()))", ["a", "b", "C"]),
    ("out = sorted([3, 1, 2], cmp=lambda a, b: b - a)", [3, 2, 1]),
    ("out = [`12` + 'x', 1 <> 2, 'abc'.decode('utf-8') == u'abc', isinstance('x', basestring)]",
     ["12x", True, True, True]),
    ("out = '616263'.decode('hex') == b'abc'", True),
    ("out = {}\nexec 'z = 5' in out\nout = out['z']", 5),
    ("g = (x for x in [4, 5]); out = g.next()", 4),
    ("out = [9, 9]; out[len(out) - 1] /= 2", [9, 4]),
    ("def f(a, (b, c)): return a + b * c\nout = f(1, (2, 3))", 7),
    ("try:\n    raise ValueError, 'seven'\nexcept (ValueError, TypeError), error:\n    out = str(error)", "seven"),
    ("import numpy as np\ni = np.array([7, 8]); j = i; i /= 2; out = j.tolist()", [3, 4]),
    ("import numpy as np\nout = (np.array([-7, 8]) / np.array([2, 3])).tolist()", [-4, 2]),
    ("import numpy as np\nf = np.array([1.0, 2.0]); f[:] /= 2; f[0:1, ] /= 2; out = f.tolist()", [0.25, 1.0]),
    ("import numpy as np\na = np.arange(9.).reshape(3, 3); a[1, :] /= 2; out = a[1].tolist()", [1.5, 2.0, 2.5]),
    ("from __future__ import division\nout = 7 / 2; print 'a'", 3.5),
    ("class A:\n\tdef next(self):\n\t    raise StopIteration\n        def __iter__(self): return self\n"
     "        def __nonzero__(self): return 0 > 1\nout = [list(A()), bool(A())]", [[], False]),
    ("import numpy as np\nout = [len(np.zeros(3, np.float32).tostring()), {'a': 1}.get('a')]", [12, 1]),
    ("import numpy as np\nout = [int(np.array([2.5])), float(np.array([[3]])), int('7'), isinstance(1, int)]",
     [2, 3.0, 7, True]),
    ("out = [None < 0, None > -1, 2 >= None, None <= None, None < 'a', None > None, 1 < 2]",
     [True, False, True, True, True, False, True]),
    ("class A(object):\n    def __div__(self, other): return other\nout = A() / 4", 4),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), PRINTED)
def test_a_file_computes_what_python_2_computed(run, text, value):
    assert run(text) == value


def test_print_writes_what_python_2_wrote(run, capsys):
    run("import sys\nprint 'a', 'b',\nprint 'c'\nprint >>sys.stderr, 'd'\nprint\nprint('%d' % 3), 4\nout = 0")
    assert capsys.readouterr() == ("a b c\n\n3 4\n", "d\n")


def test_an_attribute_is_divided_once_and_in_place(run):
    text = """
    import numpy as np
    class Holder: pass
    calls = []
    def held():
        calls.append(1)
        return holder
    holder = Holder(); holder.a = np.array([4., 6.]); kept = holder.a
    held().a /= 2
    out = [kept.tolist(), len(calls)]
    """
    assert run(textwrap.dedent(text)) == [[2.0, 3.0], 1]


def test_text_files_hold_any_bytes_and_keep_their_line_ends(run, tmp_path):
    data = b"a\r\nb\xff\xfe\n"
    (tmp_path / "in.txt").write_bytes(data)
    text = f"""
text = open({str(tmp_path / "in.txt")!r}).read()
with open({str(tmp_path / "out.txt")!r}, "w") as f:
    f.write(text[:3]); f.write(text[3:].encode("utf-8", "surrogateescape"))
out = len([line for line in open({str(tmp_path / "in.txt")!r}, "rU")])
"""
    assert run(text) == 2
    assert (tmp_path / "out.txt").read_bytes() == data


def test_keys_and_values_of_an_lmdb_are_text(run, tmp_path):
    pytest.importorskip("lmdb")
    text = f"""
import lmdb
base = lmdb.open({str(tmp_path / "base")!r}, map_size=int(1e6))
with base.begin(write=True) as transaction:
    transaction.put('{{:0>3d}}'.format(7), 'seven')
    transaction.put(b'008', b'\\xff')
with base.begin() as transaction:
    cursor = transaction.cursor()
    out = [transaction.get('007'), transaction.get('009', 'none'), cursor.set_range('008'), cursor.value()]
"""
    assert run(text) == ["seven", "none", True, "\udcff"]


def test_a_message_is_read_from_a_file_that_was_opened_as_text(run, tmp_path):
    (tmp_path / "mean").write_bytes(b"\x3a\x04\xff\r\n\xe9")  # a field of bytes
    text = f"""
from google.protobuf.descriptor_pb2 import UninterpretedOption as Message
out = Message()
out.ParseFromString(open({str(tmp_path / "mean")!r}).read())
out = [out.string_value, Message.FromString(open({str(tmp_path / "mean")!r}, 'rb').read()) == out]
"""
    assert run(text) == ["\udcff\r\n\udce9", True]

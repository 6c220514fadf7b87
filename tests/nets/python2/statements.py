"""Small programs of Python 2, made from forms and values, and what Python 2.7.18 printed for each (statements.json).

    python tests/nets/python2/statements.py /path/to/python2.7    # writes statements.json again

A form has {places}; each is filled with all of its values. The programs need no library but Python's own.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

FACTS = Path(__file__).with_name("statements.json")

# What is printed after something has set, or not set, x and y.
_LEAKS = {
    "{list}": ["[x for x in 'abc']", "[x for x in 'abc' if x != 'c']", "[(x, y) for x, y in [(1, 2), (3, 4)]]",
               "[x + y for x in 'ab' for y in 'cd']", "[[x for x in range(3)] for y in range(2)]", "[x for x in ()]",
               "[x for x in [y for y in range(4)]]", "[y for x in range(3) for y in [x for x in range(x)]]",
               "list(x for x in 'abc')", "[f() for f in [lambda: x for x in range(3)]]", "sorted({{x for x in 'abc'}})",
               "dict((x, y) for x, y in [(1, 2)])", "sum(y for y in [x for x in range(4)])",
               "map(lambda x: [y for y in range(x)], range(3))", "[x for x in 'ab' if [y for y in 'cd']]",
               "any([x for x in 'ab'] for y in range(2))", "[lambda: x for x in range(3)][0]()"],
}  # fmt: skip
FORMS: list[tuple[str, dict[str, list[str]]]] = [
    ("x, y = 'old', 9\nprint {list}\nprint x, y", _LEAKS),
    ("def f():\n    x, y = 'old', 9\n    z = {list}\n    return z, x, y\nprint f()", _LEAKS),
    ("class A:\n    x, y = 'old', 9\n    z = [x for x in 'abc']\n    w = [y for y in range(y)]\nprint A.x, A.y, A.z, A.w", {}),
    ("class A:\n    n = 2\n    rows = [[i * n for i in range(n)] for k in range(n)]\nprint A.rows, A.i, A.k", {}),
    ("x = 5\nif [x for x in range(3)]: print x\nwhile [x for x in range(x)]: print x\nprint x", {}),
    ("x = 1\ndef f(a=[x for x in range(3)]): return a, x\nprint f(), x", {}),
    ("x = 7\nprint {form}\nprint x", {"{form}": ["`[x for x in 'ab']`", "'%s' % [x for x in 'ab']", "([x for x in 'ab'], x)",
      "(lambda x: [x for x in 'ab'])(3)", "len([x for x in 'ab']) and x", "[x for x in 'ab'][0] + str(x)"]}),
    # Generators
    ("def g(n):\n    for i in range(9):\n        if i == n: {stop}\n        yield i\nprint list(g(3)), list(g(0)), sum(g(5))",
     {"{stop}": ["raise StopIteration", "raise StopIteration()", "raise StopIteration, 'end'", "return", "iter([]).next()",
                 "next(iter(()))"]}),
    ("def g(it):\n    while True:\n        yield it.next(), it.next()\nprint list(g(iter({values})))",
     {"{values}": ["'abcd'", "'abc'", "[]"]}),
    ("def g():\n    'doc'\n    try:\n        yield 1\n        raise StopIteration\n    finally:\n        print 'closed'\nprint list(g()), g.__doc__", {}),
    ("def g():\n    try:\n        yield 1\n        raise StopIteration\n    except StopIteration:\n        yield 2\nprint list(g())", {}),
    ("it = iter(range(5))\nprint list(it.next() for _ in range(9)), list(next(it, 'end') for _ in range(2))", {}),
    ("class A:\n    def __init__(self): self.n = 0\n    def __iter__(self): return self\n    def next(self):\n"
     "        self.n += 1\n        if self.n > 3: raise StopIteration\n        return self.n\nprint list(A()), [a for a in A()], A().next()", {}),
    # Literals
    ("s = {prefix}'a\\{escape}z'\nprint len(s), [ord(c) for c in s]",
     {"{prefix}": ["", "u", "r", "ur", "b"], "{escape}": ["u0041", "n", "x41", "101", "d", "\\", "\\u0042", "'"]}),
    ("s = {prefix}'a\\{escape}z'\nprint len(s), [ord(c) for c in s], `s`",
     {"{prefix}": ["", "r", "b"], "{escape}": ["U1", "N", "Users", "xff", "377", "x89PNG", "u12", "N{x}"]}),
    ('s = {prefix}"""a\\u0041\n\\d"""\nprint len(s), `s`', {"{prefix}": ["", "r", "b", "B", "bR"]}),
    ("from __future__ import unicode_literals\ns = '\\u0041'\nprint len(s), len(b'\\u0041')", {}),
    ("s = 'C:\\Users\\new' + \"\\N\" 'b' # it's \\u\nprint len(s), s.split('\\U')", {}),
    # Random draws
    ("import random\nrandom.seed({seed})\n{draw}\nprint repr(random.random())",
     {"{seed}": ["0", "5", "-5", "2**40", "'name'", "1.5", "(1, 'a')", "2**70"],
      "{draw}": ["x = range(10); random.shuffle(x); print x", "print random.choice('abcdef'), random.choice(range(7))",
                 "print random.sample(range(100), 5), random.sample(xrange(1000), 30)", "print random.randint(0, 9)",
                 "print random.randrange(10), random.randrange(5, 50, 3), random.randrange(2**60)",
                 "print repr(random.uniform(1, 2)), repr(random.gauss(0, 1)), repr(random.normalvariate(0, 1))",
                 "print repr(random.expovariate(2)), repr(random.triangular(0, 1, .3)), random.getrandbits(40)",
                 "print repr(random.betavariate(1, 2)), repr(random.gammavariate(2, 1)), repr(random.vonmisesvariate(1, 2))",
                 "print repr(random.paretovariate(2)), repr(random.weibullvariate(1, 2)), repr(random.lognormvariate(0, 1))"]}),
    ("import random\nr = random.Random({seed})\nx = list('abcdefg'); r.shuffle(x); print x, r.sample(x, 3), r.choice(x), r.randint(1, 6)\n"
     "state = r.getstate(); a = r.random(); r.setstate(state); print a == r.random()", {"{seed}": ["3", "'x'"]}),
    ("from random import seed, shuffle, randint, sample\nseed(1)\nx = range(5); shuffle(x); print x, randint(1, 3), sample(set([1, 2, 3]), 2)", {}),
    ("import random\nx = range(5)\nrandom.shuffle(x, lambda: 0.3)\nprint x", {}),
    # Files
    ("f = open('o', {mode})\nf.write({data})\nf.close()\ns = open('o', {read}).read()\nprint len(s), `s`, s == {data}",
     {"{mode}": ["'w'", "'wb'", "'w+b'", "'a'", "'w', 0", "'wb', 0"], "{data}": ["'3 cat\\n'", "'a\\r\\nb'", "'\\x00\\xff\\x89'"],
      "{read}": ["'r'", "'rb'"]}),
    ("open('o', 'wb').write('a b\\nc d\\n')\nf = open('o', {read})\n{use}",
     {"{read}": ["'r'", "'rb'", "'rU'"],
      "{use}": ["for line in f: print line.split(' '), line == 'a b\\n'", "print f.readline(), f.readlines()", "print f.read(3) + '!'",
                "print [l.strip() for l in f], f.tell()", "print f.next(), list(f)", "print map(len, f)",
                "print dict(l.split() for l in f)", "print sorted(f), max(open('o', 'rb'))", "print iter(f.readline, '').next()",
                "a, b = f\nprint a, b", "print enumerate(f).next(), zip(f, 'xy')", "print 'a b\\n' in f",
                "import itertools\nprint list(itertools.islice(f, 1))"]}),
    ("f = open('o', 'wb')\nprint >>f, 'x', 3\nf.writelines(['a\\n', 'b'])\nf.flush()\nf.close()\nprint `open('o').read()`", {}),
    ("import csv\nf = open('o', {mode})\nw = csv.writer(f)\nw.writerow(['id', 1, 2.5, None])\nw.writerows([('a,b', 'q\"')])\nf.close()\n"
     "print `open('o', 'rb').read()`\nfor row in csv.reader(open('o', {read})): print row",
     {"{mode}": ["'w'", "'wb'"], "{read}": ["'r'", "'rb'", "'rU'"]}),
    ("import csv\nf = open('o', 'wb')\nw = csv.DictWriter(f, ['a', 'b'])\nw.writeheader(); w.writerow({{'a': 1, 'b': 'x'}})\nf.close()\n"
     "for row in csv.DictReader(open('o', 'rb')): print row['a'] == '1', row['b']", {}),
    ("import json\njson.dump({{'a': [1, 'x']}}, open('o', {mode}))\nprint open('o').read(), json.load(open('o', 'rb'))['a'][0]\n"
     "print json.loads('[1]', encoding='utf-8'), json.dumps('a', encoding='latin-1')", {"{mode}": ["'w'", "'wb'"]}),
    ("import {module} as pickle\nv = {{'a': [1, 'x', (2.5,)]}}\npickle.dump(v, open('o', {mode}), {protocol})\n"
     "print pickle.load(open('o', {read})) == v, pickle.loads(pickle.dumps(v)) == v, pickle.loads(open('o', {read}).read())['a'][1]",
     {"{module}": ["pickle", "cPickle"], "{mode}": ["'w'", "'wb'"], "{protocol}": ["0", "2", "-1"], "{read}": ["'r'", "'rb'"]}),
    ("import tempfile\nf = tempfile.NamedTemporaryFile()\nf.write('text')\nf.flush()\nf.seek(0)\ns = f.read()\nprint s, s == 'text', open(f.name).read()", {}),
    ("import gzip\nf = gzip.open('o.gz', 'wb')\nf.write('a\\nb')\nf.close()\nf = gzip.open('o.gz')\n{use}",
     {"{use}": ["print f.read() == 'a\\nb'", "for l in f: print l == 'b', l", "print f.readlines()"]}),
    ("import StringIO, cStringIO\nfor make in (StringIO.StringIO, cStringIO.StringIO):\n    s = make('a\\nb')\n    print s.readlines(), s.getvalue() == 'a\\nb', list(make('x\\ny'))", {}),
    ("import zipfile\nz = zipfile.ZipFile('o.zip', 'w')\nz.writestr('a.txt', 'text')\nz.close()\nz = zipfile.ZipFile('o.zip')\nprint z.namelist(), z.read('a.txt') == 'text', z.open('a.txt').read()", {}),
    ("import io\nb = io.BytesIO('ab')\nb.write('c')\nprint b.getvalue() == 'cb', io.open('o', 'wb').write('xy')", {}),
    ("import codecs\nf = codecs.open('o', 'w', 'utf-8')\nf.write(u'a\\u00e9')\nf.close()\ns = open('o', 'rb').read()\nprint s.decode('utf-8') == u'a\\xe9', codecs.open('o', encoding='utf-8').read() == u'a\\xe9'", {}),
    # What comes as bytes
    ("{imports}\ns = {source}\nprint len(s), `s`, s == {same}, isinstance(s, str), s[0], s[-1:] + '!', '%s' % s, {{s: 1}}.get({same})",
     {"{imports}": ["import subprocess, os, zlib, base64, binascii, hashlib, struct, socket, array, bz2, urllib, hmac, mmap"],
      "{source}{same}": [
          "subprocess.check_output(['echo', 'yes']).strip()|'yes'", "subprocess.Popen(['echo', 'a b'], stdout=subprocess.PIPE).communicate()[0]|'a b\\n'",
          "subprocess.Popen('cat', stdin=subprocess.PIPE, stdout=subprocess.PIPE).communicate('in')[0]|'in'",
          "subprocess.Popen(['echo', 'x'], stdout=subprocess.PIPE).stdout.read()|'x\\n'", "os.popen('echo y').read()|'y\\n'",
          "subprocess.Popen(['echo', 'x'], stdout=subprocess.PIPE).stdout.readline()|'x\\n'",
          "zlib.decompress(zlib.compress('text'))|'text'", "bz2.decompress(bz2.compress('text'))|'text'", "base64.b64encode('ab')|'YWI='",
          "base64.b64decode('YWI=')|'ab'", "base64.encodestring('ab')|'YWI=\\n'", "base64.decodestring('YWI=')|'ab'",
          "binascii.hexlify('ab')|'6162'", "binascii.unhexlify('6162')|'ab'", "hashlib.md5('abc').hexdigest()|'900150983cd24fb0d6963f7d28e17f72'",
          "hashlib.sha1('a' + 'b').digest()|hashlib.sha1('ab').digest()", "hmac.new('k', 'm').hexdigest()|'e1b8d7b8b3a5ad0bb5f5a3c4ee7a2c1d'",
          "struct.pack('>I', 5)|'\\x00\\x00\\x00\\x05'", "struct.pack('4s', 'ab')|'ab\\x00\\x00'", "struct.unpack('2s', 'ab')[0]|'ab'",
          "array.array('B', [97, 98]).tostring()|'ab'",
          "urllib.quote('a b')|'a%20b'", "os.read(os.open('/dev/zero', 0), 2)|'\\x00\\x00'", "'YWI='.decode('base64')|'ab'", "'ab'.encode('hex')|'6162'",
          "'a'.encode('utf-8')|'a'", "u'\\u00e9'.encode('latin-1')|'\\xe9'", "str(bytearray('ab'))|'ab'",
          "bytes('ab')|'ab'", "chr(65) + chr(200)|'A\\xc8'", "''.join(map(chr, [97, 255]))|'a\\xff'", "str(buffer('abc', 1))|'bc'",
          "'abc'.encode('zlib').decode('zlib')|'abc'", "'abc'.encode('rot13')|'nop'", "'a\\\\n'.decode('string_escape')|'a\\n'"]}),
    ("import subprocess\np = subprocess.Popen(['printf', 'a\\\\nb\\\\n'], stdout=subprocess.PIPE)\n{use}",
     {"{use}": ["for line in p.stdout: print line.strip() == 'a', line.rstrip()", "for line in iter(p.stdout.readline, ''): print line,",
                "out, err = p.communicate()\nprint out.split('\\n'), err", "print [l.strip() for l in p.stdout.readlines()]",
                "print p.stdout.read().splitlines()", "lines = list(p.stdout)\nprint lines", "print max(p.stdout)"]}),
    ("import subprocess\np = subprocess.Popen('cat', stdin=subprocess.PIPE, stdout=subprocess.PIPE)\np.stdin.write('a\\n')\np.stdin.close()\nprint p.stdout.read() == 'a\\n'", {}),
    ("import struct\nprint struct.pack('<H', 0xa9c3) == '\\xc3\\xa9', u'\\u00e9'.encode('utf-8') == '\\xc3\\xa9', '\\xe9'.decode('latin-1') == u'\\xe9'\n"
     "print '\\xc3\\xa9' != '\\xc3\\xa8', '\\xc3\\xa9'.decode('utf-8') == u'\\xe9', u'\\xe9'.encode('utf-8').decode('utf-8') == u'\\xe9'", {}),
    ("import commands\nprint commands.getoutput('echo a; echo b'), commands.getstatusoutput('exit 3')", {}),
    ("import socket\na, b = socket.socketpair()\na.send('hi'); print b.recv(9) == 'hi'\na.sendall('yo'); print b.recv(1) + '!'", {}),
    ("import struct\ns = struct.pack('>IHB3s', 1, 2, 3, 'abc')\nprint len(s), struct.unpack('>IHB3s', s), [ord(c) for c in s], s[7:], struct.calcsize('>I')", {}),
    ("open('o', 'wb').write(''.join(chr(i) for i in range(256)))\nf = open('o', 'rb')\nprint [ord(c) for c in f.read(3)], len(f.read(200)), ord(f.read(1)), len(f.read())\n"
     "import struct\nf.seek(195); print struct.unpack('BB', f.read(2)), struct.unpack('>H', open('o', 'rb').read()[254:])", {}),
    # Builtins
    ("print {call}",
     {"{call}": ["oct(8), oct(0), oct(-9), hex(255), hex(2**70), hex(-1)", "sorted([3, None, 'a', 2.5, (1,), [1]])", "min(None, 3), max('a', 5), max([1], (1,))",
                 "cmp(1, 2), cmp('b', 'a'), cmp(None, 0), cmp([1, 2], [1, 3])", "1 < 'a', None < -5, [] < (), {{}} < []", "chr(97), ord('a'), unichr(98), len(unichr(300))",
                 "'{{}} {{:.2f}} {{0}}'.replace(' {{0}}', '').format(0.1 + 0.2, 1.5)", "'{{x}} {{y[0]}}'.format(x=1e16, y=[0.1 + 0.2])", "format(0.1 + 0.2), str(1e16), str(1.0), `0.1`",
                 "'%s %r %d %5.1f' % (0.1 + 0.2, 0.1, 3.7, 2.25)", "str(0.1 + 0.2) + str([0.1 + 0.2])", "7 / 2, -7 / 2, 7 // 2.0, 7 % -3, divmod(-7, 2)", "round(2.5), round(-0.5), round(1.25, 1), int(round(3.5))",
                 "map(None, 'ab', 'c'.center(2)), filter(None, [0, 1]), filter(str.isdigit, 'a1b2')", "zip('ab', [1, 2]), range(3), xrange(3)[1]", "reduce(lambda a, b: a + b, [1, 2, 3], 10)",
                 "apply(max, (1, 2)), intern('a'), isinstance(u'a', basestring), long(3) == 3", "int('12', 8), int(' 7 '), long('9'), float('1e3')", "'abc'.translate(None, 'b'), 'a-b'.replace('-', '+')",
                 "isinstance('a', bytes), bytes is str, bytes(5)", "unicode(3), unicode('abc', 'utf-8'), unicode(2.5)", "{{'a': 1}}.has_key('a'), {{1: 2}}.items() + [3], {{1: 2}}.keys()[0], {{1: 2}}.iteritems().next()",
                 "sum([0.1] * 3), sum([[1], [2]], [])", "u'a' + 'b' == 'ab', 'a' 'b'", "'a\\tb'.expandtabs(4), 'x'.zfill(3), 'a,b'.split(','), 'ab'[::-1]", "'abc'.encode('hex'), '616263'.decode('hex')",
                 "[1, 2] == [1, 2.0], (1, 2) < (1, 3), 0777, 0xffL == 255", "type(1).__name__, type('a').__name__, type(1.5).__name__", "hash('a') == hash(u'a'), id(1) == id(1)", "sorted('bca', cmp=lambda a, b: cmp(b, a))",
                 "sorted([('a', 2), ('b', 1)], key=lambda (k, v): v)", "max([3, 1], key=lambda v: -v), min('ab', 'b')", "sorted({{'b': 1, 'a': 2}}.iteritems(), key=lambda p: p[1], reverse=True)"]}),
    ("x = [3, 'a', None, 1]\nx.sort()\nprint x\nx.sort(cmp=lambda a, b: cmp(str(a), str(b)))\nprint x\nx.sort(key=str, reverse=True)\nprint x", {}),
    ("import string\nprint string.maketrans('ab', 'xy')[97:99], 'aabb'.translate(string.maketrans('ab', 'xy')), string.upper('a'), string.split('a b'), string.atoi('5'), string.zfill('5', 3), string.uppercase[:3]", {}),
    # print
    ("{lines}", {"{lines}": ["print 1,\nprint 2", "for i in range(3): print i,\nprint", "print 'a\\n',\nprint 'b'", "print 'a',\nimport sys\nsys.stdout.write('b')\nprint 'c'", "print 'a', 'b\\n', 'c'",
                             "print", "print ''", "print 1,", "print 'a ',\nprint 'b'", "print (1, 2)", "print (1), 2", "print ()", "print [1,],", "import sys\nprint >>sys.stdout, 'a',\nprint 'b'",
                             "print 'a\\t',\nprint 'b'", "print u'x', `1`, 1.0, 1e20, 1L, True, None", "x = xrange(3)\nprint('a', 1)\nprint('')\nprint()", "x = xrange(2)\nprint('%d' % 3)\nprint('a' + 'b')",
                             "from __future__ import print_function\nx = xrange(2)\nprint('a', 1, sep='-', end='.')\nprint()"]}),
    # Classes
    ("class M(type):\n    def __new__(m, name, bases, d):\n        d['made'] = name\n        return type.__new__(m, name, bases, d)\n"
     "class A({base}):\n    __metaclass__ = M\nclass B(A): pass\nprint A.made, B.made", {"{base}": ["object"]}),
    ("class A:\n    def __init__(self, v): self.v = v\n    def __cmp__(self, o): return cmp(self.v, o.v)\n"
     "print A(1) < A(2), A(1) == A(1), A(2) != A(2), max(A(1), A(3), A(2)).v, [a.v for a in sorted([A(2), A(1)])]", {}),
    ("class A(object):\n    def __eq__(self, o): return True\na = A()\nprint {{a: 1}}[a], len(set([a]))", {}),
    ("class A(object):\n    def __nonzero__(self): return False\n    def __div__(self, o): return 'div'\n    def __rdiv__(self, o): return 'rdiv'\n"
     "    def __unicode__(self): return u'uni'\n    def __str__(self): return 'str'\n    def __idiv__(self, o): return 'idiv'\n"
     "a = A()\nprint bool(a), a / 1, 1 / a, unicode(a), str(a), a, '%s' % a\na /= 2\nprint a", {}),
    ("class A:\n    def f(self): return 1\na = A()\nprint a.f.im_func.func_name, a.f.im_self is a, A.f.im_func.func_code.co_argcount, a.f.__name__, A.f(a)", {}),
    ("class A(object):\n    def __getslice__(self, i, j): return (i, j)\n    def __getitem__(self, i): return i\na = A()\nprint a[1:3], a[5]", {}),
    ("class A(object):\n    def __hex__(self): return '0xa'\n    def __oct__(self): return '012'\n    def __long__(self): return 7\n    def __int__(self): return 8\nprint hex(A()), oct(A()), int(A())", {}),
    ("class P(object):\n    def f(self): return 'P'\nclass A(P):\n    def f(self): return super(A, self).f() + 'A'\nprint A().f()", {}),
    # Exceptions
    ("try: raise {error}\nexcept {kind}, e: pass\nprint e, e.args, e.message, str(e)",
     {"{error}": ["ValueError('b')", "ValueError, 'b'", "KeyError('k')", "IOError(2, 'no')"], "{kind}": ["Exception", "(ValueError, KeyError, IOError)", "StandardError"]}),
    ("try: raise ValueError('b', 3)\nexcept ValueError, e: print e[0], e[1], `e.message`", {}),
    ("def f():\n    try: int('x')\n    except ValueError as e: pass\n    try: {{}}['k']\n    except KeyError as e: x = e\n    return str(e), x is e\nprint f()", {}),
    ("try:\n    open('no such file')\nexcept IOError, e: print e.errno, e.filename", {}),
    ("import sys\ntry: raise KeyError('a')\nexcept:\n    t, v, tb = sys.exc_info()\n    print t.__name__, v.args\nsys.exc_clear()\nassert {test}, 'no'", {"{test}": ["1", "not ()"]}),
    ("try:\n    raise ValueError, 'seven', None\nexcept ValueError, (text,):\n    print text", {}),
    ("try:\n    1 / 0\nexcept ZeroDivisionError, e: print e", {}),
    # Text that is run
    ("{lines}", {"{lines}": ["exec 'print 7 / 2'", "exec 'x = 7 / 2' in {{}}", "d = {{}}\nexec 'x = 7 / 2' in d\nprint d['x']", "print eval('7 / 2'), eval('`1`')", "exec compile('print 1,2', 'f', 'exec')",
                             "print eval(compile('3 / 2', 'f', 'eval'))", "open('m.py', 'w').write('print \"m\"\\ny = 9 / 2')\nexecfile('m.py')\nprint y", "exec \"for i in range(2): print i,\"",
                             "open('m.py', 'w').write('y = 9 / 2; print \"m\"')\nimport m\nprint m.y\nreload(m)", "open('m.py', 'w').write('y = 9 / 2; print \"m\"')\nm = __import__('m')\nprint m.y",
                             "open('m.py', 'w').write('y = 9 / 2; print \"m\"')\nimport importlib\nprint importlib.import_module('m').y",
                             "open('n.py', 'w').write('y = 9 / 2; print \"m\"')\nimport imp\nprint imp.load_source('m', 'n.py').y\nimport m\nprint m.y",
                             "open('m.py', 'w').write('y = 9 / 2; print \"m\"')\nimport imp\nfound = imp.find_module('m')\nprint imp.load_module('m', *found).y",
                             "import os\nos.mkdir('p')\nopen('p/__init__.py', 'w').write('')\nopen('p/q.py', 'w').write('y = 9 / 2; print \"q\"')\nimport importlib\nprint importlib.import_module('p.q').y, importlib.import_module('.q', 'p').y",
                             "import os\nos.mkdir('p')\nopen('p/__init__.py', 'w').write('import q\\nfrom q import y')\nopen('p/q.py', 'w').write('y = 9 / 2; print \"q\"')\nimport p\nprint p.y, p.q.y",
                             "open('m.py', 'w').write('y = 9 / 2; print __name__')\nimport runpy\nprint runpy.run_path('m.py')['y']"]}),
    # Modules that have changed
    ("{lines}", {"{lines}": ["import types\nprint type('a') == types.StringType, type([]) is types.ListType, isinstance(u'a', types.StringTypes), type(None) == types.NoneType, type(1.) is types.FloatType",
                             "import md5, sha\nprint md5.new('a').hexdigest(), sha.new('a').hexdigest(), md5.md5('b').hexdigest()[:4]", "import sets\nprint len(sets.Set([1, 1]))", "from exceptions import ValueError as V\nprint V is ValueError",
                             "import os\nprint os.getcwdu() == os.getcwd()\nos.mkdir('d')\ndef v(arg, top, names): print top, names\nos.path.walk('d', v, None)", "import itertools\nprint list(itertools.izip('ab', 'cd')), list(itertools.imap(len, ['a'])), list(itertools.ifilter(None, [0, 1])), list(itertools.izip_longest('a', 'bc'))",
                             "import inspect\ndef f(a, b=2, *c, **d): pass\nprint inspect.getargspec(f).args, inspect.getargspec(f)[3], len(inspect.getargspec(f))", "import operator\nprint operator.div(7, 2), operator.isCallable(len), operator.sequenceIncludes([1], 1)",
                             "import Queue, ConfigParser, HTMLParser, cPickle, urlparse, urllib2, thread, copy_reg\nprint Queue.Queue().empty(), urlparse.urlparse('a://b/c').netloc", "import collections\nprint isinstance([], collections.Sequence), issubclass(dict, collections.Mapping)",
                             "import threading\nt = threading.Thread(target=lambda: None)\nprint t.isAlive()", "import xml.etree.ElementTree as E\ne = E.fromstring('<a><b/><c/></a>')\nprint [x.tag for x in e.getchildren()], len(list(e.getiterator()))",
                             "import ConfigParser\nopen('c', 'w').write('[a]\\nx = 1\\nx = 2\\n')\nc = ConfigParser.SafeConfigParser()\nc.readfp(open('c'))\nprint c.getint('a', 'x')", "import math\nprint math.floor(2.5), math.ceil(-0.5), math.sqrt(4)",
                             "import cgi, fractions, time\nprint cgi.escape('<a>'), fractions.gcd(6, 4), time.clock() >= 0", "import __builtin__\nprint __builtin__.len is len", "import urllib\nprint urllib.urlencode([('a', 1)]), urllib.unquote('%41'), urllib.quote_plus('a b')"]}),
]  # fmt: skip


# With libraries: what numpy 1.16.6, h5py 2.10, lmdb 0.98, protobuf 3.17 and Pillow 6.2.2 gave.
OF_LIBRARIES = [
    "import numpy as np\nopen('o','w').write('a 1\\nbc 2\\n')\nx = np.loadtxt('o', dtype=str)\nprint x[0][0] == 'a', x[1][0] + '!', '%s' % x[1,0], list(x[:,0])",
    "import numpy as np\nopen('o','w').write('a 1\\nbc 2\\n')\nx = np.loadtxt('o', dtype={'names': ('n','v'), 'formats': ('S5','i4')})\nprint x['n'][0] == 'a', x[1]['n'] + '!', x['v'].sum()\nfor n, v in x: print n, v, n == 'bc'",
    "import numpy as np\nopen('o','w').write('a 1\\nbc 2\\n')\nx = np.genfromtxt('o', dtype=None)\nprint x[0][0] == 'a', x[1][1]",
    "import numpy as np\nopen('o','w').write('a,1\\nbc,2\\n')\nx = np.genfromtxt('o', delimiter=',', dtype='S5')\nprint x[0][0] == 'a', x[1][0].split('c')",
    "import numpy as np\nopen('o','wb').write('a 1\\nbc 2\\n')\nx = np.loadtxt(open('o', 'rb'), converters={0: lambda s: len(s)})\nprint x",
    "import numpy as np\nx = np.array(['a', 'bc'])\nprint x[0] == 'a', x == 'a', x[1].upper(), sorted(x), 'bc' in x, x.tolist(), x.shape",
    "import numpy as np\nx = np.array(['a', 'bc'], dtype='S2')\nfor s in x: print s == 'a', s + '!', {'a': 1}.get(s)\nprint [s for s in x], x[x == 'a'], np.unique(x), x.tostring() == 'a\\x00bc'",
    "import numpy as np\nx = np.zeros(2, dtype=[('n', 'S4'), ('v', 'f4')])\nx['n'] = ['a', 'bcde']\nx[0]['v'] = 2\nx[1] = ('q', 3)\nprint x['n'][1], x[0]['n'] == 'a', x['v'], x['n'].tolist()",
    "import numpy as np\nx = np.arange(4, dtype=np.uint8)\ns = x.tostring()\nprint len(s), ord(s[3]), np.fromstring(s, dtype=np.uint8), np.frombuffer(s, np.uint8)[2]\ny = np.array([200, 255, 195, 169], np.uint8).tostring()\nprint len(y), [ord(c) for c in y], np.fromstring(y, np.uint8).tolist(), np.fromstring(y[1:3], 'u1').tolist()",
    "import numpy as np\nnp.savetxt('o', np.array(['a','b']), fmt='%s')\nprint repr(open('o').read())\nnp.savetxt(open('p', 'wb'), [[1.5, 2]], fmt='%.1f')\nprint repr(open('p','rb').read())",
    "import numpy as np\nnp.save(open('o.npy', 'wb'), np.arange(3)); print np.load(open('o.npy', 'rb')), np.load('o.npy')\nnp.savez('o.npz', names=np.array(['a','b'])); print np.load('o.npz')['names'][1] == 'b', np.load('o.npz').keys()",
    "import numpy as np\nopen('o','wb').write('\\x01\\x00\\x02\\x00')\nprint np.fromfile('o', np.int16), np.fromfile(open('o','rb'), dtype='<i2')\nf = open('o', 'rb'); print np.fromstring(f.read(2), np.int16), np.frombuffer(f.read(), np.int16)",
    "import numpy as np, struct\nopen('o', 'wb').write(struct.pack('>IIII', 2051, 2, 2, 2) + ''.join(map(chr, [0, 50, 100, 150, 200, 250, 128, 195])))\nf = open('o', 'rb')\nmagic, n, r, c = struct.unpack('>IIII', f.read(16))\nd = np.fromstring(f.read(), dtype=np.uint8).reshape(n, r, c)\nprint magic, d.tolist()\nf.seek(16); print [ord(f.read(1)) for i in range(8)]\nf.seek(16); print [struct.unpack('B', f.read(1))[0] for i in range(8)]",
    "import numpy as np\nopen('o', 'wb').write('PIEH' + np.array([2, 1], np.int32).tostring() + np.array([1.5, 2, -3, 4], np.float32).tostring())\nf = open('o', 'rb')\ntag = f.read(4)\nprint tag == 'PIEH', np.fromfile(f, np.int32, 2), np.fromfile(f, np.float32)",
    "import numpy as np, cPickle\nx = {'data': np.arange(4), 'names': ['a', 'b']}\ncPickle.dump(x, open('o', 'wb'))\ny = cPickle.load(open('o', 'rb'))\nprint y['data'], y['names'], sorted(y.keys())",
    "import numpy as np\nx = np.chararray((2,), itemsize=3) if 0 else np.core.defchararray.add(np.array(['a', 'b']), 'x')\nprint x[0] == 'ax'",
    "import h5py, numpy as np\nf = h5py.File('o.h5', 'w')\nf['n'] = np.array(['AA', 'B'])\nf.create_dataset('m', data=np.array(['x', 'yz'], dtype='S2'))\ng = f.create_group('g'); g['k'] = np.array(['q']); f.attrs['name'] = 'net'; f.attrs['names'] = np.array(['a', 'b']); f['s'] = 'scalar'\nf.create_dataset('l', data=['u', 'v'])\nf.close()\nf = h5py.File('o.h5', 'r')\nprint map(str, sorted(f.keys())), f['n'][0] == 'AA', f['n'][:][1] + '!', f['m'].value[1], f['g/k'][0], f['g']['k'][:].tolist(), f.attrs['name'] == 'net', f.attrs['names'][1], f['s'].value == 'scalar', f['l'][0] + f['l'][1]\nfor n in f['n']: print n, n == 'B'\nprint [n for n in f['m']], map(str, f['n'][:]), dict(zip(f['n'], f['m'])), list(f['n'])\nprint f['n'][:].tolist(), np.array(f['n']) == 'AA', 'AA' in f['n'][...], [str(x) for x in f['n'].value]",
    "import h5py, numpy as np\nf = h5py.File('o.h5')\nd = f.create_dataset('v', (2,), dtype=h5py.special_dtype(vlen=str))\nd[0] = 'one'; d[1] = 'two'\nf.close()\nf = h5py.File('o.h5', 'r')\nprint f['v'][0] == 'one', f['v'][:][1] + '!', f['v'].value[0].upper(), [x for x in f['v']], f['v'][:] == 'two'",
    "import lmdb\ne = lmdb.open('l', map_size=1<<20)\nwith e.begin(write=True) as t:\n    for i in range(3): t.put('%08d_x' % i, 'value%d' % i)\n    print t.get('00000001_x') == 'value1', t.get('none'), t.get('none', 'd'), t.replace('00000002_x', 'v') , t.delete('00000002_x')\nwith e.begin() as t:\n    c = t.cursor()\n    print c.first(), c.key() == '00000000_x', c.value(), c.item(), c.set_key('00000001_x'), c.next(), c.key()\n    print [k for k, v in c], [k.split('_')[0] for k in t.cursor().iternext(values=False)], dict(t.cursor())['00000000_x'], list(t.cursor())\n    for k, v in t.cursor().iterprev(): print k + v\n    for i, (k, v) in enumerate(t.cursor()): print i, k == '00000001_x'\n    print map(len, t.cursor().iternext(keys=False)), c.set_range('00000001'), c.key(), zip(t.cursor(), 'ab')",
    'from google.protobuf import descriptor_pb2 as d\nm = d.FileDescriptorProto(name=\'a\')\ns = m.SerializeToString()\nn = d.FileDescriptorProto(); n.ParseFromString(s)\nprint len(s), n.name == \'a\', d.FileDescriptorProto.FromString(s).name, repr(s)\no = d.UninterpretedOption()\no.string_value = \'a\\xff\\x00\'\nprint o.string_value == \'a\\xff\\x00\', len(o.string_value), repr(o.SerializeToString())\np = d.UninterpretedOption(string_value=\'\\x01\\xc3\\xa9\'); print repr(p.string_value), p.HasField(\'string_value\')\nq = d.UninterpretedOption(); q.MergeFromString(p.SerializeToString()); print q == p\nfrom google.protobuf import text_format\nprint text_format.MessageToString(m).strip()\ntext_format.Merge(\'name: "b"\', m); print m.name\nopen(\'o\', \'wb\').write(m.SerializeToString()); m.ParseFromString(open(\'o\', \'rb\').read()); print m.name, str(m).strip()',
    "from PIL import Image\nimport StringIO, numpy as np, io\na = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)\nim = Image.fromarray(a)\ns = StringIO.StringIO(); im.save(s, 'PNG'); d = s.getvalue()\nprint d[1:4], len(d) > 50, np.asarray(Image.open(StringIO.StringIO(d))).tolist() == a.tolist(), np.asarray(Image.open(io.BytesIO(d))).shape\nopen('o.png', 'wb').write(d); print np.asarray(Image.open('o.png')).sum(), np.asarray(Image.open(open('o.png', 'rb'))).sum()\nraw = im.tobytes(); print len(raw), [ord(c) for c in raw][:3], np.asarray(Image.frombytes('RGB', (2, 2), raw)).sum()",
    "import numpy as np\nprint np.array([1, 2, 3]) / 2, np.float32(1) / 3 > 0.3, '%d' % np.array([3]), np.array(['1', '2']).astype(int).sum(), map(int, np.array(['1','2']))",
]  # fmt: skip


def programs() -> list[str]:
    """All programs."""
    made = list(OF_LIBRARIES)
    for form, places in FORMS:
        for values in itertools.product(*places.values()):
            text = form
            for place, value in zip(places, values, strict=True):
                for name, part in zip(place.replace("}{", "} {").split(" "), value.split("|"), strict=False):
                    text = text.replace(name, part)
            made.append(text.replace("{{", "{").replace("}}", "}"))
    return list(dict.fromkeys(made))


def printed(python: str, text: str) -> str | None:
    """What a Python prints for a program. None if the program ends with an error."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "old.py").write_text(text)
        done = subprocess.run([python, "old.py"], cwd=folder, capture_output=True, check=False)
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None


if __name__ == "__main__":
    facts = {text: printed(sys.argv[1], text) for text in programs()}
    for text in (text for text, out in facts.items() if out is None):
        print(f"an error, left out: {text!r}", file=sys.stderr)
    kept = {text: out for text, out in facts.items() if out is not None}
    FACTS.write_text(json.dumps(kept, indent=0, ensure_ascii=True) + "\n")
    print(f"{len(kept)} programs")

"""Old names of libraries give the old results."""

import pickle
import sys
import types
from typing import Any

import numpy as np
import pytest

from cuffi.nets.python2 import Tree
from cuffi.nets.python2.libraries import library

FILES = [
    ("out = np.zeros(3, np.float).dtype.name + np.ones((2.0, 2), np.int).dtype.kind", "float64i"),
    ("out = [np.linspace(0, 1, 3.).tolist(), np.random.choice(4, size=2.0, replace=False).shape]",
     [[0, 0.5, 1], (2,)]),
    ("out = np.arange(6)[1.0:3.0].tolist()", [1, 2]),
    ("out = [np.array([[1], [2, 3]]).dtype.name, np.fromstring('ab', np.uint8).tolist(), np.product([2, 3])]",
     ["object", [97, 98], 6]),
    ("out = np.load(PATH).item()['a']", 1),
    ("from numpy import *\nout = float(zeros(2.0).sum())", 0.0),
    ("import numpy.random as npr\nout = npr.rand(3.0).shape", (3,)),
    ("import cPickle\nout = cPickle.load(open(PICKLE))", {"a": [1]}),
    ("import cPickle\nout = cPickle.loads(cPickle.dumps(7))", 7),
    ("import yaml\nout = yaml.load(\"{'a': !!python/tuple [1, 2]}\")", {"a": (1, 2)}),
    ("from StringIO import StringIO\ns = StringIO(); s.write('a\\n'); s.write('b'); out = s.getvalue()", "a\nb"),
    ("import cStringIO\ns = cStringIO.StringIO(open(PATH).read()); out = s.read(6) == b'\\x93NUMPY'", True),
    ("import cStringIO\ns = cStringIO.StringIO(b'ab'); out = s.read() == b'ab'", True),
    ("import string\nout = [string.join(['a', 'b'], '-'), string.replace('aa', 'a', 'b'), string.letters[:2]]",
     ["a-b", "bb", "ab"]),
    ("import itertools\nout = list(itertools.izip([1], [2]))", [(1, 2)]),
    ("import itertools\nout = list(itertools.imap(None, [1], [2]))", [(1, 2)]),
    ("out = [buffer('abc')[1], str(buffer('abcd', 1, 2)), coerce(1, 2.5), coerce(2, 3)]",
     ["b", "bc", (1.0, 2.5), (2, 3)]),
    ("import numpy as np\nout = [str(type(1.5)), '%s' % np.float32, str([type('')][0])]",
     ["<type 'float'>", "<type 'numpy.float32'>", "<type 'str'>"]),
    ("from collections import Mapping\nout = isinstance({}, Mapping)", True),
    ("import Queue, ConfigParser, urllib2\nout = [Queue.Queue().empty(), urllib2.quote('a b')]", [True, "a%20b"]),
    ("import sys\nreload(sys)\nsys.setdefaultencoding('utf8')\nout = sys.maxint > 1 << 60", True),
    ("import scipy.misc\nout = scipy.misc.imresize(np.zeros((4, 6, 3), np.uint8), 0.5).shape", (2, 3, 3)),
    ("from scipy.misc import imread, imsave\nimsave(PNG, np.full((2, 3), 9, np.uint8))\nout = imread(PNG).tolist()",
     [[9] * 3] * 2),
    ("from PIL import Image\nimport PIL.Image\nout = Image.new('L', (4, 4)).resize((2, 2), Image.ANTIALIAS).size",
     (2, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), FILES)
def test_old_names_give_what_they_gave(tmp_path, text, value):
    if "yaml" in text:
        pytest.importorskip("yaml")
    if "scipy" in text or "PIL" in text:
        pytest.importorskip("PIL")
    np.save(tmp_path / "a.npy", np.array({"a": 1}, dtype=object))
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"a": [1]}, 0))
    names = {
        "PATH": str(tmp_path / "a.npy"),
        "PICKLE": str(tmp_path / "a.pkl"),
        "PNG": str(tmp_path / "a.png"),
    }
    (tmp_path / "old.py").write_text("import numpy as np\nif 0: print 'Python 2'\n" + text)
    Tree([tmp_path], {}).run(tmp_path / "old.py", names)
    assert names["out"] == value


def test_other_code_keeps_its_numpy(tmp_path):
    (tmp_path / "old.py").write_text("import numpy as np\nx = np.float\nprint x")
    Tree([tmp_path], {}).module("old")
    assert not hasattr(np, "float")


def test_an_image_is_rescaled_by_its_sides_alone(tmp_path, monkeypatch):
    """Without scikit-image: checks the arguments of its function, which once detected the axis of colours itself."""
    given = []
    transform: Any = types.ModuleType("skimage.transform")
    transform.rescale = lambda image, scale, **options: given.append(options)
    monkeypatch.setitem(sys.modules, "skimage", types.ModuleType("skimage"))
    monkeypatch.setitem(sys.modules, "skimage.transform", transform)
    (tmp_path / "old.py").write_text(
        "import numpy as np\nfrom skimage.transform import rescale\nprint ''\n"
        "for shape in ((4, 6, 3), (4, 6), (4, 6, 9)): rescale(np.zeros(shape), 0.5)\n"
        "rescale(np.zeros((4, 6, 3)), 0.5, channel_axis=None)\n"
    )
    library.cache_clear()
    Tree([tmp_path], {}).module("old")
    old = {"mode": "constant", "anti_aliasing": False}  # as before scikit-image 0.14
    assert given == [old | {"channel_axis": -1}, old, old, old | {"channel_axis": None}]
    library.cache_clear()

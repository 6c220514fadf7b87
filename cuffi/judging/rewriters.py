"""The toolkit's own rewriters and readers of logs, which are no part of the package (tools/).

Only what judges imports this: pytest loads the plugin in each of its runs, where `tools` may be a package of yours.
"""

import sys

from ..loading import toolkit

sys.path.insert(0, str(toolkit.root()))  # before a folder of yours that is called tools

from tools.cases.races import LaneRead, Mistake, OfHost, Race, parse
from tools.cuda.analysis import Unit
from tools.cuda.body import Body, declarators, walk
from tools.cuda.launches import parse as parse_code
from tools.cuda.names import BLOCK, THREAD
from tools.cuda.outline import Function
from tools.cuda.rewrite import rewrite_unit
from tools.cuda.source import Source
from tools.cuda.to_host import HostRewriter
from tools.cuda.tokens import LOOP
from tools.cuda.undecided import decided
from tools.files import read
from tools.package_module import package_module

cxx = package_module("base/compiler").cxx  # without cuffi.base, which imports torch

__all__ = [
    "BLOCK",
    "LOOP",
    "THREAD",
    "Body",
    "Function",
    "HostRewriter",
    "LaneRead",
    "Mistake",
    "OfHost",
    "Race",
    "Source",
    "Unit",
    "cxx",
    "decided",
    "declarators",
    "parse",
    "parse_code",
    "read",
    "rewrite_unit",
    "walk",
]

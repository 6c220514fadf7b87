"""`from cuffi.runtime.cases import caffe_case` in a layer's cases.py: the name was there."""

from .cases import CaffeFunction as CaffeFunction
from .cases import caffe_case as caffe_case

"""Extensions of torch/extension.h (from 2018 on), unedited, without torch's headers and libraries.

include/ has headers of our own: include/aten does the work, and the others (torch, ATen, c10, pybind11, and THC in
include/later) are the names that extensions include. src/aten_python.cpp is the part of each library that talks to
Python.
"""

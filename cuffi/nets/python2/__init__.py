"""Run Python files of Caffe's time unedited: Python 2, old numpy, libraries that have changed since.

A file is converted in memory. Its lines keep their numbers, so errors and tracebacks show the file's own text.
`Tree` (modules.py) imports a user's folders apart from all other modules. `convert.py` converts a file. `language.py`
has Python 2's builtins and methods, `libraries.py` the old behaviour of libraries, and `extensions.py` the functions of
detectors' compiled modules.
"""

from .modules import Tree, folders_of_user, place_of

__all__ = ["Tree", "folders_of_user", "place_of"]

"""Run an OpenCV 4 script under OpenCV 5: cv2.dnn gets the names of its Caffe importer again."""

from __future__ import annotations

import os
import sys

from ..pycaffe.run_script import main
from . import models, opencv_net
from .registered import registerLayer, unregisterLayer

NAMES = {"readNetFromCaffe": opencv_net.readNetFromCaffe}
# Numbers that OpenCV 5 may lack. Scripts give them to setPreferableBackend and setPreferableTarget.
CONSTANTS = {f"DNN_BACKEND_{name}": number for number, name in opencv_net.BACKENDS.items()}
CONSTANTS |= {f"DNN_TARGET_{name}": number for number, name in opencv_net.TARGETS.items()}


def install() -> list[str]:
    """Add the names that an installed cv2.dnn lacks. OpenCV's own names stay.

    OpenCV's `readNet` reads Caffe's files by this module, and all other files as before.

    Returns:
        the names that were added.

    Raises:
        ImportError: cv2 is not installed.
    """
    import cv2

    added = []
    for name, value in (NAMES | CONSTANTS).items():
        if not hasattr(cv2.dnn, name):
            setattr(cv2.dnn, name, value)
            added.append(name)
        if name.startswith("read") and not hasattr(cv2, f"dnn_{name}"):
            setattr(cv2, f"dnn_{name}", value)
    if "readNetFromCaffe" in added:
        for name, function in (
            ("dnn_registerLayer", registerLayer),
            ("dnn_unregisterLayer", unregisterLayer),
        ):
            setattr(cv2, name, _also(function, getattr(cv2, name, None)))
            added.append(name)
        for kind in models.CLASSES:
            name = kind.__name__
            made = _chooser(kind, getattr(cv2.dnn, name, None))
            setattr(cv2.dnn, name, made)
            setattr(cv2, f"dnn_{name}", made)
            added.append(name)
        theirs = getattr(cv2.dnn, "readNet", None)
        cv2.dnn.readNet = _reader(theirs)
        added.append("readNet")
    return added


def _also(ours, theirs):
    """Call OpenCV's function and ours, because both kinds of nets may have such a layer."""

    def both(*arguments, **named):
        ours(*arguments, **named)
        if theirs is not None:
            theirs(*arguments, **named)

    both.__doc__ = ours.__doc__
    return both


def _chooser(ours, theirs):
    """A model's class: ours for Caffe's nets and files, otherwise OpenCV's."""

    def model(*arguments, **named):
        is_ours = theirs is None or models.is_of_caffe(*arguments, *named.values())
        return (ours if is_ours else theirs)(*arguments, **named)

    model.__name__, model.__doc__ = ours.__name__, ours.__doc__
    return model


def _reader(theirs):
    def readNet(model, config="", framework="", *more, **named):
        """cv2.dnn.readNet; Caffe's files are read by cuffi."""
        given = [str(value).lower() for value in (model, config) if isinstance(value, (str, os.PathLike))]
        is_caffe = "caffe" in given or (isinstance(framework, str) and framework.lower() == "caffe")
        if is_caffe or any(word in value for value in given for word in (".caffemodel", ".prototxt")):
            return opencv_net.readNet(model, config, framework)
        return theirs(model, config, framework, *more, **named)

    return readNet


def run(arguments: list[str], name: str = f"python -m {__name__.partition('.')[0]}.dnn") -> int:
    """`cuffi dnn script.py arguments...`, of Python 2 or 3. Returns the exit status.

    Args:
        name: the command, for messages.
    """
    try:
        install()
    except ImportError as error:
        print(f"{name}: {error}: pip install opencv-python", file=sys.stderr)
        return 2
    return main(name, arguments, USAGE, language=3)


USAGE = """\
usage: {name} script.py [arguments]

Runs a Python 2 or 3 script that reads Caffe files with cv2.dnn, unedited, also if OpenCV has no importer for them. Its
folder comes first on sys.path, as with `python script.py`."""

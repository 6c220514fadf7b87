"""Run a script of OpenCV 4 under OpenCV 5: cv2.dnn gets the names of its Caffe importer."""

from __future__ import annotations

import os
import runpy
import sys

from . import net

NAMES = {"readNetFromCaffe": net.readNetFromCaffe}
# Numbers that OpenCV 5 may lack. Scripts give them to setPreferableBackend and setPreferableTarget.
CONSTANTS = {f"DNN_BACKEND_{name}": number for number, name in net.BACKENDS.items()}
CONSTANTS |= {f"DNN_TARGET_{name}": number for number, name in net.TARGETS.items()}


def install() -> list[str]:
    """Put the names that an installed cv2.dnn lacks into it. What OpenCV has stays OpenCV's own.

    `readNet` of OpenCV stays, too; for Caffe's files ours answers.

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
        theirs = getattr(cv2.dnn, "readNet", None)
        cv2.dnn.readNet = _reader(theirs)
        added.append("readNet")
    return added


def _reader(theirs):
    def readNet(model, config="", framework="", *more, **named):
        """cv2.dnn.readNet; Caffe's files are read by cuffi."""
        given = f"{model} {config}".lower()
        if framework.lower() == "caffe" or ".caffemodel" in given or ".prototxt" in given:
            return net.readNet(model, config, framework)
        return theirs(model, config, framework, *more, **named)

    return readNet


def run(arguments: list[str]) -> int:
    """`python -m cuffi.dnn script.py arguments...`. Returns the exit status; errors of the script are the script's."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m cuffi.dnn script.py [arguments]", file=sys.stderr)
        return 2
    script = arguments[0]
    if not os.path.exists(script):
        print(f"python -m cuffi.dnn: no such file: {script}", file=sys.stderr)
        return 2
    try:
        install()
    except ImportError as error:
        print(f"python -m cuffi.dnn: {error}: pip install opencv-python", file=sys.stderr)
        return 2
    # As Python does for a script: its folder comes first, and this package's is not there.
    here = os.path.realpath(os.getcwd())
    sys.path[:] = [p for p in sys.path if p and os.path.realpath(p) != here]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    sys.argv[:] = arguments
    runpy.run_path(script, run_name="__main__")
    return 0

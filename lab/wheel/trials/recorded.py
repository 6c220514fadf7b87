"""Run a script as `cuffi dnn` or `cuffi caffe` does, and write a digest of each result of its nets to a file.

    python recorded.py FILE dnn|caffe script.py arguments

A camera, and a film that is not there, are one picture. No window is shown.
"""

import atexit
import contextlib
import hashlib
import json
import os
import random
import sys
from pathlib import Path

import numpy as np

from cuffi.nets.dnn.opencv_net import Net as OpenCVNet
from cuffi.nets.pycaffe.pycaffe_net import Net as CaffeNet

FRAMES = 3
MOST = 20  # results; a camera never ends
FOUND: list[str] = []


def digest(value) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {digest(one)}" for name, one in sorted(value.items()))
    if isinstance(value, (tuple, list)):
        return ", ".join(map(digest, value))
    value = np.ascontiguousarray(value)
    return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()[:16]}"


def record(kind) -> None:
    forward = kind.forward

    def recorded(self, *arguments, **named):
        value = forward(self, *arguments, **named)
        FOUND.append(digest(value))
        if len(FOUND) == MOST:
            raise SystemExit(0)
        return value

    kind.forward = recorded


def without_screen() -> None:
    """OpenCV without windows, and with a camera."""
    import cv2

    theirs = cv2.VideoCapture
    picture = np.random.default_rng(3).integers(0, 255, (30, 40, 3), np.uint8)
    picture = cv2.resize(picture, (640, 480), interpolation=cv2.INTER_CUBIC)
    keys = iter([-1] * (FRAMES - 1))

    class Capture:
        def __init__(self, source=0, *more):
            self.film = theirs(source) if isinstance(source, str) and os.path.isfile(source) else None
            self.left = FRAMES if isinstance(source, str) and "://" not in source else 10**6

        def read(self, *image):
            self.left -= 1
            if self.left < 0:
                return False, None
            return self.film.read() if self.film else (True, picture.copy())

        def isOpened(self):
            return self.left > 0

        def get(self, what):
            return self.film.get(what) if self.film else {3: 640.0, 4: 480.0, 5: 25.0}.get(what, 0.0)

        def set(self, *what):
            return True

        def release(self):
            self.left = 0

    windows = ("imshow", "namedWindow", "moveWindow", "resizeWindow", "destroyAllWindows", "destroyWindow")
    stands_in: dict[str, object] = dict.fromkeys(windows, lambda *arguments, **named: None)
    # Some scripts wait for any key, and some for a q.
    stands_in |= {"VideoCapture": Capture, "waitKey": lambda delay=0: next(keys, ord("q"))}
    for name, made in stands_in.items():
        setattr(cv2, name, made)
    with contextlib.suppress(ImportError):  # some draw how many frames a second they read
        import imutils.video

        imutils.video.FPS.fps = lambda self: 25.0


if __name__ == "__main__":
    out, kind, *arguments = sys.argv[1:]
    atexit.register(lambda: Path(out).write_text(json.dumps(FOUND)))
    os.environ.setdefault("MPLBACKEND", "Agg")
    np.random.seed(0)
    random.seed(0)
    record(OpenCVNet)
    record(CaffeNet)
    without_screen()
    sys.argv = ["cuffi", kind, *arguments]
    from cuffi.commands.main import main

    sys.exit(main())

"""cv2.dnn's Caffe importer, for scripts that OpenCV 5 no longer runs: `readNetFromCaffe` and OpenCV's Net.

    from cuffi import dnn
    net = dnn.readNetFromCaffe("deploy.prototxt", "res10.caffemodel")
    net.setInput(blob)          # a numpy array, as cv2.dnn.blobFromImage makes it
    detections = net.forward()  # a numpy array

Without a change to the script: `python -m cuffi.dnn script.py arguments...` puts what is missing into an installed
cv2.dnn, and runs the script.
"""

from __future__ import annotations

import sys

from .nets.dnn.models import ClassificationModel, DetectionModel, KeypointsModel, Model, SegmentationModel
from .nets.dnn.opencv_net import Net, readNet, readNetFromCaffe
from .nets.dnn.registered import registerLayer, unregisterLayer
from .nets.dnn.script import install, run

__all__ = [
    "ClassificationModel",
    "DetectionModel",
    "KeypointsModel",
    "Model",
    "Net",
    "SegmentationModel",
    "install",
    "readNet",
    "readNetFromCaffe",
    "registerLayer",
    "unregisterLayer",
]


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))

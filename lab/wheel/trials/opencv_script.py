"""A script of OpenCV 4. An OpenCV 5 has no readNetFromCaffe."""

import sys

import cv2
import numpy as np

net = cv2.dnn.readNetFromCaffe(sys.argv[1], sys.argv[2])
net.setInput(cv2.dnn.blobFromImage(np.full((20, 30, 3), 128, np.uint8), 1.0, (10, 10), (104, 117, 123)))
found = net.forward()
np.testing.assert_allclose(found, [[[[0, 1, 0.75, 0.3, 0.3, 0.7, 0.7]]]], atol=1e-6)
print(f"OpenCV {cv2.__version__}; {type(net).__module__}")

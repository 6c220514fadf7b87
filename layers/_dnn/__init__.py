"""cv2.dnn's names for a CaffeNet: the net, and the runner of scripts."""

"""cv2.dnn's interface on CaffeNet: the net, the models, and the runner of scripts."""

"""The robust regression loss of Fast R-CNN.

    top = 1/N * sum of outside * f(inside * (prediction - target))
    f(x) = 0.5 * (sigma * x)^2    where |x| < 1 / sigma^2
           |x| - 0.5 / sigma^2    elsewhere

Bottoms: prediction and target, then optionally inside weights and outside weights; all of one shape, N x any axes. Top:
a number without axes. Each bottom gets a gradient.

Written from Girshick: Fast R-CNN, ICCV 2015, equation 3; sigma is that of Faster R-CNN's fork.
"""

from cuffi import caffe_layer

SmoothL1Loss = caffe_layer(__name__, "SmoothL1Loss")

"""The correlation of two images at each displacement (FlowNet).

    top[n, i * side + j, y, x] = mean of first(p) * second(p + d)

The mean is over the channels and over the kernel_size^2 pixels p of a patch around (y, x); d is the displacement
((i - radius) * stride_2, (j - radius) * stride_2). radius = max_displacement / stride_2 and side = 2 * radius + 1. With
correlation_type SUBTRACT, the mean is of |first(p) - second(p + d)|. Both images are padded by `pad` zeros.

Bottoms: two of one shape, N x C x H x W. Top: N x side^2 x H' x W', where H' = (H + 2 pad - 2 max_displacement -
kernel_size) / stride_1 + 1, rounded down, and W' likewise. Both bottoms get a gradient; that of |.| at 0 is 0.

Written from Dosovitskiy et al.: FlowNet, ICCV 2015, equation 1; the fields are those of FlowNet's fork.
"""

from cuffi import caffe_layer

Correlation = caffe_layer(__name__, "Correlation")

"""L2 normalisation with a learned scale (ParseNet, SSD).

    top[n, c, h, w] = scale[c] * bottom[n, c, h, w] / sqrt(eps + sum of bottom^2)

The sum is over the channels of a position; with across_spatial, which is the default, over the whole image.

Bottom: N x C x any axes. Top: the same shape. Parameter blob: the scale, one number (channel_shared) or one for each
channel; scale_filler sets its initial value, by default 1.

Written from Liu, Rabinovich, Berg: ParseNet, 2015, section 3.3; the fields are those of SSD's fork.
"""

from cuffi import caffe_layer

Normalize = caffe_layer(__name__, "Normalize")

"""Position-sensitive RoI pooling (R-FCN).

    top[r, c, i, j] = mean of scores[image of r, (c * group_size + i) * group_size + j] over the pixels of bin (i, j)

A region r is (image, x1, y1, x2, y2) in the input image's pixels. Its corners are rounded, x2 and y2 get 1 more, and
all are multiplied by spatial_scale. It has group_size x group_size bins. A bin's edges are rounded outwards and clipped
to the map. An empty bin gives 0.

Bottoms: scores, N x (output_dim * group_size^2) x H x W; regions, R x 5. Top: R x output_dim x group_size x group_size.
The scores get a gradient; the regions get none.

Written from Dai et al.: R-FCN, NIPS 2016, equation 1; the fields are those of R-FCN's fork.

The gradient has the same bits in every run: each pixel's sum has the regions' order.
"""

from cuffi import caffe_layer

PSROIPooling = caffe_layer(__name__, "PSROIPooling")

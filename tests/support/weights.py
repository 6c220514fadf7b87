"""A net with blobs of each kind, and its weights, written by protobuf itself."""

import torch

from cuffi import caffe_net
from cuffi.nets.net.messages import STOCK

TEXT = """input: "data" input_shape { dim: 2 dim: 3 dim: 6 dim: 6 }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip" inner_product_param { num_output: 5 } }
"""


def net_with(seed=0, dtype=torch.float32):
    net = caffe_net(TEXT).to(dtype)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in net.state_dict().values():
            tensor.normal_(generator=generator)
    return net


def same(first, second):
    return all(
        torch.equal(a, b)
        for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    )


def add_blob(layer, values, legacy=False, double=False, shape=None):
    blob = layer.blobs.add()
    if legacy:
        shape = shape or (1,) * (4 - values.ndim) + values.shape
        blob.num, blob.channels, blob.height, blob.width = shape
    else:
        blob.shape.dim.extend(shape or values.shape)
    (blob.double_data if double else blob.data).extend(values.ravel().tolist())


def message_of(net, **kinds):
    """The net's weights as protobuf itself would write them."""
    message = STOCK.message("NetParameter")
    for name, module in net.layers.items():
        layer = message.layer.add()
        layer.name, layer.type = name, type(module).__name__
        for blob in module.present_blobs():
            add_blob(layer, getattr(module, blob).detach().numpy(), **kinds)
    return message

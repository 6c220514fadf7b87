"""For nets: a fused convolution on a GPU (cuffi/nets/net/fused.py asks for it)."""

import torch

from cuffi.runtime import backend_of

from . import ACTIVATIONS, depthwise_conv, layer


def function_for(device_type: str):
    """The operator `depthwise_conv` for such devices; None if it is not built, or if torch's is faster, as on a CPU."""
    if device_type == "cpu" or backend_of(torch.device(device_type)).name not in layer.backends():
        return None
    return depthwise_conv


def activation_number(name: str | None) -> int:
    """The operator's number of the activation: None, "relu" or "relu6"."""
    return ACTIVATIONS[name]

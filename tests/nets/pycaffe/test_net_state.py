"""What a caffe.Net refuses: names and arrays that are not its own."""

import pytest
import torch
from support.pycaffe import assert_close, data, reference

from cuffi import CaffeValueError


def test_arguments_are_written_to_the_inputs_and_checked(net):
    x = data(2, 3, 6, 6)
    assert_close(net.forward(data=x)["prob"], reference(net, torch.from_numpy(x))["prob"])
    for given, said in (
        ({"images": x}, "inputs: expected data, got images"),
        ({"data": x[:1]}, r"'data': expected a batch of 2, got \[1, 3, 6, 6\]; net.blobs\['data'\].reshape"),
        ({"data": x[..., :5]}, "'data': could not broadcast"),
    ):
        with pytest.raises(CaffeValueError, match=said):
            net.forward(**given)

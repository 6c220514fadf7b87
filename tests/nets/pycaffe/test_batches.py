"""Any number of items."""

import numpy as np
import torch
from support.pycaffe import assert_close, data, reference


def test_any_number_of_items_runs_in_batches(net):
    x = data(5, 3, 6, 6)
    expected = reference(net, torch.from_numpy(x))
    out = net.forward_all(data=x, blobs=["ip"])
    assert_close(out["ip"], expected["ip"])
    made, found = net.forward_backward_all(data=x, prob=np.ones((5, 5), np.float32), diffs=["ip"])
    assert_close(made["prob"], expected["prob"])
    assert found["data"].shape == (5, 3, 6, 6)

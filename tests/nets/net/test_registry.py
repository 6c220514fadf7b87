"""Which folder's layer computes a type."""

from pathlib import Path

import torch
from support.nets import INPUT
from support.typed import not_none

from cuffi import caffe_net
from cuffi.nets.net.needs import needs
from cuffi.nets.net.registry import Folders


class Ported(torch.nn.Module):
    """A ported layer, as a net uses it."""

    type, folder, type_name, is_set_up = "Pooling", Path("pooling"), "Pooling", True

    def __init__(self, prototxt, bottom, top):
        super().__init__()
        self.prototxt = prototxt

    def top_shapes(self, *bottoms):
        return [(1, 2)]

    @classmethod
    def module_class(cls):
        return cls


def test_fields_of_forks_are_read_by_the_ported_layer_where_there_is_one(monkeypatch):
    text = INPUT + "".join(
        f'layer {{ name: "{name}" type: "Pooling" bottom: "data" top: "{name}" '
        f"pooling_param {{ kernel_size: 3 {said} }} }}\n"
        for name, said in (("of_fork", "pad_l: 1"), ("of_stock", "ceil_mode: false"))
    )
    (field,) = not_none(needs(text)["Pooling"].fields)
    assert (field.path, field.message) == ("pooling_param.pad_l", "PoolingParameter")
    assert needs(text, ignore=["pooling_param.pad_l"])["Pooling"].fields is None
    monkeypatch.setattr(Folders, "find", lambda self, name: Ported)
    net = caffe_net(text)
    assert "pad_l: 1" in net.of_fork.prototxt and "pad_l is not stock Caffe's" in net.notes[0]
    assert not isinstance(net.of_stock, Ported)
    assert not isinstance(caffe_net(text, ignore=["pooling_param.pad_l"]).of_fork, Ported)

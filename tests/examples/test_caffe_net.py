"""examples/train_caffe_net.py: a net in Caffe's format learns, with a ported layer and without."""

import pytest
from conftest import ROOT, skip_if_missing
from support.points import layer_object
from support.typed import module_of


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("sklearn", reason="the digits lie in scikit-learn")
    skip_if_missing("cpu", layer_object("normalize"))
    return module_of(ROOT / "examples" / "train_caffe_net.py")


@pytest.mark.parametrize(
    ("net", "training", "least"),
    [([], ["--quick"], 0.94), (["--without-custom-layer"], ["--epochs", "2"], 0.9)],
)
def test_a_net_in_caffes_format_learns(example, net, training, least):
    assert example.main(["--device", "cpu", "--epochs", "0", *net]) < 0.35
    assert example.main(["--device", "cpu", *training, *net]) > least

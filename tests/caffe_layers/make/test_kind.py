"""make's rules for Caffe layers: the units of the core, which folders need what."""

import pytest
from conftest import ROOT

from cuffi.caffe_layers.make.kind import core_folder, units

REGISTERED = "REGISTER_LAYER_CLASS(One);\n"


def test_each_source_of_the_core_is_compiled_once():
    """Together with similar ones, except files of which a layer's folder may have its own version."""
    core = core_folder(str(ROOT))
    made = units(core)
    assert sorted(part for parts in made.values() for part in parts) == core.sources
    together = {unit: parts for unit, parts in made.items() if parts != [unit]}
    assert set(together) == {"base.cpp", "stock.cpp", "stock_loops.cpp"}
    assert "blob.cpp" in together["base.cpp"] and "layers/loss_layer.cpp" in together["base.cpp"]
    assert "net.cpp" in together["stock.cpp"] and "layers/bias_layer.cpp" in together["stock.cpp"]
    assert "layers/pooling_layer.cpp" in together["stock_loops.cpp"]
    alone = {unit for unit in made if unit not in together}
    assert {"io.cpp", "util/im2col.cpp", "util/im2col.cu", "layers/pooling_layer.cu"} <= alone


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ('#include "caffe/layers/conv_layer.hpp"', True),
        ('#include "caffe/layer.hpp"', False),
        ('#include "caffe/layers/loss_layer.hpp"', False),
        ('#include "caffe/layers/neuron_layer.hpp"', False),
        ('#include "caffe/layers/own_layer.hpp"', False),
        ('#include "caffe/vision_layers.hpp"', True),
        ('#include "caffe/net.hpp"', True),
        ('#include "caffe/layer_factory.hpp"', True),
        ('#include "caffe/util/insert_splits.hpp"', True),
        ('#include "caffe/util/io.hpp"', False),
        ("LayerRegistry<Dtype>::CreateLayer(p);", True),
        ("Net <Dtype> net;", True),
        ("NetParameter net;", False),
    ],
)
def test_what_is_linked_with_the_stock_layers(folder, text, uses):
    assert folder(**{"one.cpp": REGISTERED + text, "own_layer.hpp": ""}).archives == (
        *["libstock.a"] * uses,
        "libcaffe.a",
    )
    assert not folder(**{"one.cpp": text, "one.cu": text}).archives  # no Caffe layer

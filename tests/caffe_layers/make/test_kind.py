"""make's rules for Caffe layers: the units of the core, which folders need what."""

from conftest import ROOT

from cuffi.caffe_layers.make.kind import core_folder, units


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

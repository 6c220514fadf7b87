"""tools.make.rules: of what files the Caffe core's objects are made."""

from pathlib import Path

from tools.make.rules import core_folder, units

ROOT = Path(__file__).resolve().parents[3]


def test_each_source_of_the_core_is_compiled_once():
    """Together with those of its kind, but for what a folder may have one of its own for."""
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

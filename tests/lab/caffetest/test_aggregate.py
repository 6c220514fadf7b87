"""Files of tested layers that no include names."""

import pytest

from lab.caffetest import aggregate
from tools.refused import Refused


def test_layers_of_a_forks_tests_in_aggregate_headers(fork):
    """Trees before 2015-12: no header of that name says where the layer under test is."""
    for name in ("Shift", "Other"):
        fork.layer(name, header="caffe/vision_layers.hpp")
    texts = ["typename Dtype;\nShiftLayer<Dtype> layer(layer_param);\n"]

    def found(*more):
        return {path.name for path in aggregate.Layers(fork.root).in_aggregates([*texts, *more])}

    assert found() == {"vision_layers.hpp", "shift_layer.cpp"}
    assert "other_layer.cpp" in found("OtherLayer<float> layer;\n")
    old = fork.write("src/caffe/layers/old_layer.cpp", "REGISTER_LAYER_CLASS(OLD, OldLayer);\n")
    with pytest.raises(Refused, match="a tree of 2014"):
        found()
    old.unlink()
    fork.layer("Shift")
    assert found() == found("MockLayer<float> mock;\n") == set()


def test_what_a_fork_added_is_there_for_its_tests(fork):
    """Additions are for the layers whose sources come along. A header that comes along itself needs none."""
    fork.write("include/caffe/util/math_functions.hpp", "inline int twist(int n) { return n; }\n")
    fork.write("include/caffe/common.hpp", "#define FORK_LIMIT 7\n#define OTHER_LIMIT 8\n")
    pooling = fork.write("include/caffe/layers/pooling_layer.hpp", "namespace caffe { struct Pooled {}; }\n")
    shift = dict(header="caffe/vision_layers.hpp", includes='#include "caffe/layers/pooling_layer.hpp"')
    fork.layer("Shift", body="twist(FORK_LIMIT);\n  Pooled pooled;", **shift)
    fork.layer("Other", body="twist(OTHER_LIMIT);")
    files = [fork.root / "include/caffe/vision_layers.hpp", fork.root / "src/caffe/layers/shift_layer.cpp"]
    made = aggregate.Layers(fork.root).additions(files)["additions.hpp"]
    assert "#define FORK_LIMIT 7\n" in made and "inline int twist" in made and "struct Pooled" in made
    assert "OTHER_LIMIT" not in made
    assert "Pooled" not in aggregate.Layers(fork.root).additions([*files, pooling])["additions.hpp"]
    assert aggregate.Layers(fork.root).additions([pooling]) == {}

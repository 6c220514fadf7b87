"""make port: functions of Caffe's core that a fork changed."""

import pytest
from support.fork import CORE

from cuffi.caffe_layers.port.bodies import TABLE, bodies, bvlc_bodies, changed
from cuffi.caffe_layers.port.tree import Tree

SAID = "the fork changed {}; here BVLC's version runs"


def test_a_changed_function_that_the_layer_calls_is_named(fork, port):
    update = "template <typename Dtype>\nvoid Blob<Dtype>::Update() { step_ += 1; }\n"
    fork.write("src/caffe/blob.cpp", f"namespace caffe {{\n{update}}}\n")
    fork.layer("Shift", body="top[0]->Update();")
    fork.layer("Twist")
    assert f"  src/caffe/blob.cpp:3: {SAID.format('Blob::Update')}\n" in port("Shift")
    assert "the fork changed" not in port("Twist")


@pytest.mark.parametrize(
    ("function", "is_named"),
    [
        ("virtual inline int ExactNumBottomBlobs() const { return -1; }", False),
        ("virtual int ExactNumBottomBlobs() const {\n  // all\n  return  -1;\n}", False),
        ("virtual inline int ExactNumBottomBlobs() const { return 1; }", True),
        ("int their_own() const { return 1; }", False),  # others say what the core lacks
    ],
)
def test_layers_own_functions_run_around_every_layer(fork, port, function, is_named):
    fork.write("include/caffe/layer.hpp", CORE % ("Layer", function))
    fork.layer("Shift")
    assert (SAID.format("Layer::ExactNumBottomBlobs") in port("Shift")) == is_named


def test_every_version_of_a_function_counts(fork):
    """The table has BVLC's whole history, because forks started at any time."""
    versions = [line.split() for line in TABLE.read_text().splitlines()[1:]]
    assert len(bvlc_bodies()) == sum(len(digests) for _, *digests in versions) > 200
    assert max(len(digests) for _, *digests in versions) > 5
    fork.write(
        "include/caffe/blob.hpp", CORE % ("Blob", "int num() const { return 1; } int num(int) { return 2; }")
    )
    tree = Tree(str(fork.root))
    source = tree["include/caffe/blob.hpp"].source
    assert [name for name, _, _ in bodies(source, "Blob")] == ["num", "num"]
    assert list(changed(tree)) == ["Blob::num"]

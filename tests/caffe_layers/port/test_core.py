"""make port: additions of a fork to the core's classes."""

import re

import pytest
from support.fork import BLOB, BLOB_CPP


def test_what_a_fork_added_to_blob(fork, port):
    """Functions that only use members of the toolkit's Blob; others are refused."""
    fork.write("include/caffe/blob.hpp", BLOB)
    fork.write("src/caffe/blob.cpp", BLOB_CPP)
    fork.layer("Above", body="top[0]->mutable_cpu_data()[0] = bottom[0]->above_middle();")
    assert "blob.hpp, class Blob: of it, into additions.*: above_middle, middle\n" in port("Above")
    folder = port.folder / "above"
    inside, outside = ((folder / f"additions{end}.hpp").read_text() for end in ("_blob", ""))
    assert inside == (
        "#pragma once\ninline Dtype middle() const { return cpu_data()[count_ / 2]; }\n"
        "Dtype above_middle() const;\n"
    )
    assert "template <typename Dtype>\nDtype Blob<Dtype>::above_middle" in outside
    assert "Blob<int>" not in outside and not (folder / "additions.cpp").exists()
    for name in ("below_middle", "far_from_middle"):
        fork.layer("Apart", body=f"bottom[0]->{name}();")
        refusal = port("Apart", fails=True)
        assert re.search(rf"uses {name} of its fork's core \(.*blob.hpp:\d+\), which", refusal)


AXES = """
namespace caffe {
template <typename Dtype> class Blob {
 public:
  explicit Blob(const int n, const int c, const int h, const int w);
  explicit Blob(const int n, const int c, const int l, const int h, const int w);
  void Reshape(const int n, const int c, const int l, const int h, const int w);
};
}
"""


@pytest.mark.parametrize("body, taken", [("Blob<Dtype> b(1, 2, 3, 4);", ""), ("Blob<Dtype> b(1, 2, 3, 4, 5);", "Blob("),
                                         ("new Blob<Dtype>(1, 2, 3, 4, 5);", "Blob("),
                                         ("b->Reshape(1, 2, 3, 4, 5);", "Reshape(")])  # fmt: skip
def test_overloads_of_blobs_functions(fork, port, body, taken):
    """Forks with five axes."""
    fork.write("include/caffe/blob.hpp", AXES)
    definition = "template <typename Dtype>\n{}(const int n, const int c, const int l, const int h, const int w) {{}}\n"
    heads = ("Blob<Dtype>::Blob", "void Blob<Dtype>::Reshape")
    fork.write("src/caffe/blob.cpp", "namespace caffe {\n" + "".join(map(definition.format, heads)) + "}\n")
    fork.layer("Shift", body=body)
    port("Shift")
    made = port.folder / "shift" / "additions_blob.hpp"
    assert (taken in made.read_text() and "const int l" in made.read_text()) if taken else not made.exists()

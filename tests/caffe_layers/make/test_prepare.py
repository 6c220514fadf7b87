"""cuffi.caffe_layers.make.prepare on a layer's folder."""

import pytest

from cuffi.caffe_layers.make.prepare import Types, overwriting
from tools.refused import Refused

TYPES = Types(["Shift", "Twist"], {}, {})


def test_functions_that_overwrite_their_results(tmp_path):
    assert overwriting(tmp_path, TYPES) == []
    (tmp_path / "overwrites").write_text("Forward_gpu\nTwist.Backward_cpu\n")
    assert overwriting(tmp_path, TYPES) == ["Shift.Forward_gpu", "Twist.Forward_gpu", "Twist.Backward_cpu"]


@pytest.mark.parametrize("line", ["Forward", "Other.Forward_gpu", "Shift.Reshape"])
def test_a_line_that_names_no_function(tmp_path, line):
    (tmp_path / "overwrites").write_text(f"Forward_gpu\n{line}\n")
    with pytest.raises(Refused, match=f"overwrites: {line}: expected lines such as Forward_gpu"):
        overwriting(tmp_path, TYPES)

"""Where caffe_pb2's messages come from."""

import os
import sys
from pathlib import Path

import pytest
from support import python_with_torch

ROOT = Path(__file__).resolve().parents[4]


FORK = """
message NetParameter { repeated LayerParameter layer = 100; }
message LayerParameter {
  optional string name = 1;
  optional string type = 2;
  repeated string bottom = 3;
  repeated string top = 4;
  optional DenseParameter dense_param = 777;
}
message DenseParameter { enum Way { ROWS = 3; } optional Way way = 1; }
"""


SCRIPT = """
import sys
{before}
import caffe
from caffe.proto import caffe_pb2
n = caffe.NetSpec()
n.d = caffe.layers.Dense(way=caffe.params.Dense.ROWS)
print caffe_pb2.LayerParameter.DESCRIPTOR.fields_by_name['dense_param'].number, n.to_proto().layer[0].dense_param.way
"""


@pytest.mark.parametrize("way", ["the fork's folder on sys.path", "CAFFE_PROTO"])
def test_a_fork_s_own_messages(way, tmp_path, cache):
    """In a new process, because caffe_pb2 is made only once."""
    proto = tmp_path / "src" / "caffe" / "proto" / "caffe.proto"
    proto.parent.mkdir(parents=True)
    proto.write_text(FORK)
    on_path = way != "CAFFE_PROTO"
    before = f"sys.path.insert(0, '{tmp_path}/python')" if on_path else ""
    (tmp_path / "a.py").write_text(SCRIPT.format(before=before))
    environment = os.environ | ({} if on_path else {"CAFFE_PROTO": str(proto)})
    command = [sys.executable, "-m", "cuffi.caffe", str(tmp_path / "a.py")]
    done = python_with_torch.run(command, ROOT, environment)
    assert done.stdout.split() == ["777", "3"], done.stderr
    if not on_path:
        proto.write_text(FORK.replace("= 777", "= "))
        done = python_with_torch.run(command, ROOT, environment)
        assert f"CaffeValueError: {proto}:" in done.stderr and "caffe.proto:8:" in done.stderr
        environment["CAFFE_PROTO"] = "/no/caffe.proto"
        done = python_with_torch.run(command, ROOT, environment)
        assert "CaffeValueError: CAFFE_PROTO: there is no file /no/caffe.proto" in done.stderr
    else:
        proto.write_text("message {")
        text = f"import sys\n{before}\nfrom caffe.proto import caffe_pb2\nprint caffe_pb2.TEST"
        (tmp_path / "b.py").write_text(text)
        done = python_with_torch.run([*command[:-1], str(tmp_path / "b.py")], ROOT, environment)
        assert done.stdout == "1\n", done.stderr
        assert f"caffe_pb2 has stock Caffe's messages, not the fork's: {proto}:" in done.stderr

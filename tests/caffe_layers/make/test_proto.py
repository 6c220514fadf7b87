"""A layer's messages: .proto files as users write them, and errors in them."""

import os
from pathlib import Path

import pytest
from support.protos import SNIPPET, generate, layer_with, parameters

from cuffi.caffe_files.parameters import Parameters
from cuffi.caffe_layers.make.proto import ProtoError, merged

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "text",
    [
        SNIPPET,
        'syntax = "proto2";\r\nimport "caffe.proto";\r\npackage caffe;\r\n' + SNIPPET,
        "\ufeff// syntax =\n" + SNIPPET,
        '/* a */ syntax = "proto2"; import "caffe/proto/caffe.proto";' + SNIPPET,
        'package other; import "caffe.proto";' + SNIPPET.replace("extend ", "extend caffe."),
        "message LayerParameter { optional string name = 1; optional string type = 2; }"
        "message NormalizeParameter { extensions 100 to max; }"
        + SNIPPET.replace("extend LayerParameter", "message Unused"),
        "package fork; message LayerParameter { optional string name = 1; optional string type = 2; "
        "optional NormalizeParameter norm_param = 147; } " + SNIPPET.partition("\n")[0],
        "message LayerParameter {  // next: 148\n optional string name = 1;\n"
        "optional NormalizeParameter norm_param = 147; }\nmessage PoolingParameter { enum A { B = 0; }"
        " optional A pool = 1 [default = B]; }\nenum Phase { TRAIN = 0; TEST = 1; }"
        " message V1LayerParameter { enum LayerType { NORMALIZE = 40; } optional LayerType type = 5;"
        " optional NormalizeParameter norm_param = 30; } message SolverState { optional int32 iter = 1; }"
        + SNIPPET.partition("\n")[0],
        SNIPPET + "enum Twice { ONE = 1; UNE = 1; }",
    ],
    ids=["bare", "crlf", "bom", "path", "package", "whole-clash", "fork", "excerpt", "alias"],
)
def test_protos_as_people_write_them(tmp_path, text):
    folder = layer_with(tmp_path / "normalize", normalize=text)
    done = generate(folder)
    if "Unused" in text:
        assert done.returncode == 1
        assert f"{folder}/normalize.proto:1:" in done.stderr and "already defined" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    message = Parameters(folder).layer_parameter("Normalize", norm_param={"across_spatial": False})
    assert message.norm_param.across_spatial is False
    header = (folder / "include" / "caffe" / "proto" / "caffe.pb.h").read_text()
    assert "const NormalizeParameter& norm_param() const;" in header


def test_messages_without_their_field(tmp_path):
    """Layers are published so; the field's name follows from the message's, unless another message has one of it."""
    text = "message ROIAlign2DParameter { optional WingParameter wing = 1; } message WingParameter {} "
    text += "message SmoothL1LossParameter {} message Other {}"
    module = parameters(layer_with(tmp_path / "wing", wing=text))
    fields = module.layer_parameter("X").DESCRIPTOR.fields_by_name
    assert fields["roi_align2d_param"].message_type.name == "ROIAlign2DParameter"
    assert "smooth_l1_loss_param" in fields and not {"wing_param", "other"} & set(fields)


def test_nothing_is_rewritten_without_need(tmp_path):
    folder = layer_with(tmp_path / "normalize", normalize=SNIPPET)
    parameters(folder)
    made = [folder / "_caffe.desc", folder / "include" / "caffe" / "proto" / "caffe.pb.h"]
    for path in made:
        os.utime(path, (1, 1))
    parameters(folder)
    assert [path.stat().st_mtime for path in made] == [1, 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("message A {\n optional it32 x = 1; }", ["normalize.proto:2:", '"it32" is not defined']),
        ("message A {\n optional int32 x 1; }", ["normalize.proto:2:", "Missing field number"]),
        ("message PoolingParameter { }", ["normalize.proto:1:", "already defined", "`extend`"]),
        (
            "\nextend LayerParameter { optional int32 x = 121; }",
            ["normalize.proto:2:", "(pooling_param)", "free one"],
        ),
        (
            "\nextend LayerParameter { optional int32 relu_param = 300; }",
            ["normalize.proto:2:", "relu_param already"],
        ),
        ("message A { map<int32, int32> x = 1; }", ["normalize.proto:1:", "map and oneof"]),
        ('syntax = "proto3"; message A { }', ["normalize.proto", "proto2"]),
    ],
)
def test_what_is_wrong_with_a_proto_is_said(tmp_path, text, said):
    done = generate(layer_with(tmp_path / "normalize", normalize=text))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    for words in said:
        assert words in done.stderr


def test_two_snippets_that_clash(tmp_path):
    other = SNIPPET.replace("Normalize", "Other").replace("norm_param", "other_param")
    done = generate(layer_with(tmp_path / "a", a=SNIPPET, b=other))
    assert done.returncode == 1
    assert "b.proto:2:" in done.stderr and "206" in done.stderr
    done = generate(
        layer_with(tmp_path / "a", a=SNIPPET, b=SNIPPET.replace("Normalize", "Other").replace("206", "207"))
    )
    assert done.returncode == 1
    assert "b.proto:2" in done.stderr and "norm_param" in done.stderr


def test_two_forks_side_by_side(tmp_path):
    one = parameters(layer_with(tmp_path / "one", p=SNIPPET))
    two = parameters(layer_with(tmp_path / "two", p=SNIPPET.replace("bool across_spatial", "bool whole")))
    assert one.layer_parameter("N", norm_param={"across_spatial": False}).norm_param.across_spatial is False
    assert two.layer_parameter("N", norm_param={"whole": False}).norm_param.whole is False


OLD_FILLER = """
syntax = "proto2";
package caffe;
message FillerParameter {
  optional string type = 1 [default = "constant"];
  optional float value = 2 [default = 0];
  optional float min = 3 [default = 0];
  optional float max = 4 [default = 1];
  optional float mean = 5 [default = 0];
  optional float std = 6 [default = 1];
  optional int32 sparse = 7 [default = -1];
  %s
}
message LayerParameter {
  optional string name = 1;
  optional string type = 2;
  optional FillerParameter filler = 3;
}
"""


@pytest.mark.parametrize("own", ["", "optional float diagonal = 8 [default = 3];"])
def test_filler_of_a_tree_from_before_variance_norm(tmp_path, own):
    """filler.hpp reads it; a fork may use its number for another field."""
    folder = layer_with(tmp_path / "old", caffe=OLD_FILLER % own)
    message = parameters(folder).layer_parameter("Old", filler={"variance_norm": "AVERAGE", "std": 2})
    kind = type(message.filler)
    assert message.filler.variance_norm == kind.AVERAGE and kind().variance_norm == kind.FAN_IN
    assert kind().sparse == -1 and (not own or kind().diagonal == 3)
    header = (folder / "include" / "caffe" / "proto" / "caffe.pb.h").read_text()
    assert "variance_norm() const" in header and "FillerParameter_VarianceNorm_FAN_OUT" in header


def test_fillers_read_the_layers_own_messages():
    """In the core they would read a fork's fields by stock Caffe's numbers."""
    wing = ROOT / "cuffi/caffe_layers"
    readers = [f.name for f in (wing / "core").glob("*.cpp") if "FillerParameter" in f.read_text()]
    assert "GetFiller(const FillerParameter& param) {" in (wing / "include/caffe/filler.hpp").read_text()
    assert not readers


def test_a_layer_parameter_of_2014_is_refused(tmp_path):
    """Its fields have other numbers: the core would read one for another."""
    old = "message LayerParameter { repeated string bottom = 2; optional string name = 4; optional int32 type = 5; }"
    (tmp_path / "caffe.proto").write_text(f"package caffe;\n{old}\n")
    with pytest.raises(ProtoError, match=r"LayerParameter\.bottom has the number 2, in stock Caffe it is 3"):
        merged(tmp_path)


def test_a_caffe_proto_that_names_messages_it_lacks(tmp_path):
    """Their fields are left out, and no line moves. What the core reads is stock Caffe's."""
    text = (
        'syntax = "proto2"; package caffe;\nmessage LayerParameter {\n  optional string name = 1;\n'
        "  optional string type = 2;\n  optional Third third_param = 140;\n  repeated Lost lost_param = 143;\n"
        "  optional other.Gone gone_param = 144 [\n    deprecated = true];\n}\nmessage Third { optional Lost in = 1; "
        "optional float by = 2; }\n"
    )
    result, _ = merged(layer_with(tmp_path / "third", caffe=text))
    messages = {message.name: {field.name for field in message.field} for message in result.message_type}
    assert messages["Third"] == {"by"} and {"BlobShape", "FillerParameter", "BlobProto"} <= messages.keys()
    assert not {"lost_param", "gone_param"} & messages["LayerParameter"]
    assert {"third_param", "bottom", "top", "phase", "blobs", "param"} <= messages["LayerParameter"]


def test_an_error_after_a_field_that_was_left_out_names_its_line(tmp_path):
    text = "message LayerParameter {\n optional string type = 2;\n optional Lost lost = 3;\n int32 wrong = 4 5;\n}\n"
    with pytest.raises(ProtoError, match=r"caffe\.proto:4:"):
        merged(layer_with(tmp_path / "third", caffe=text))

"""Caffe layers' messages: C++ accessors against protobuf's own runtime; what tools/caffe/proto.py makes of .protos."""

import ctypes
import os
import re
import subprocess
from pathlib import Path
from unittest import TestCase

import cffi
import pytest
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from support.protos import SNIPPET, generate, layer_with, parameters
from support.wire import field, of_other_types, shown_fields
from support.workshop import CXX, core_archives, core_includes, made_once

from layers._caffe import services
from layers._caffe.parameters import Parameters
from tools.caffe.proto import ProtoError, merged

ROOT = Path(__file__).resolve().parents[3]
PROTO = ROOT / "tests" / "fixtures" / "proto"


@pytest.fixture(scope="module")
def zoo(tmp_path_factory) -> Parameters:
    folder = layer_with(tmp_path_factory.mktemp("proto") / "zoo", zoo=(PROTO / "zoo.proto").read_text())
    return parameters(folder)


@pytest.fixture(scope="module")
def library(zoo, shared_folder) -> Path:
    """zoo.cpp over zoo's messages, linked with a core that knows stock Caffe's alone."""
    return made_once(shared_folder / "proto", lambda build: build_zoo(zoo, build)) / "zoo.so"


def build_zoo(zoo: Parameters, build: Path) -> None:
    _, caffe = core_archives()

    def compile(name: str, *messages: str) -> Path:
        out = build / f"{name}.o"
        command = [
            CXX,
            "-std=c++17",
            "-O0",
            "-Wall",
            "-Werror",
            "-fPIC",
            "-fno-gnu-unique",
            "-fvisibility=hidden",  # as in layers' libraries: torch may have a protobuf of its own
            "-DCAFFE_HOST_BACKEND=1",
            *messages,
            *core_includes(),
            "-c",
            PROTO / f"{name}.cpp",
            "-o",
            out,
        ]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        return out

    objects = [compile("zoo", f"-I{zoo.path.parent}/include"), compile("stock_view")]
    # As layers are linked. A compiler may take libstdc++'s static archive, whose unique symbols (locale's ids) would
    # otherwise be those of the process, beside the archive's own facets.
    link = [CXX, "-shared", *objects, caffe, "-ldl", "-Wl,--exclude-libs,ALL", "-o", build / "zoo.so"]
    subprocess.run(link, check=True)


@pytest.fixture(scope="module")
def program(library):
    """zoo.cpp's function of five paths."""
    loaded = ctypes.CDLL(str(library))
    ffi = cffi.FFI()
    ffi.cdef((ROOT / "include" / "caffe" / "layer_record.h").read_text())
    loaded.host_services = services.Services(ffi, ffi.dlopen(None), cuda=False)
    loaded.zoo.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p)]
    return lambda *paths: loaded.zoo(
        loaded.host_services.address, (ctypes.c_char_p * len(paths))(*map(os.fsencode, paths))
    )


CAGE = {"width": -1, "bars": "default", "animals": ["lion", ""], "inner": {"width": 3}}
FULL = {
    "a_int32": -5,
    "a_int64": -(2**63),
    "a_uint32": 2**32 - 1,
    "a_uint64": 2**64 - 1,
    "a_sint32": -(2**31),
    "a_sint64": -(2**63),
    "a_fixed32": 2**32 - 2,
    "a_fixed64": 2**64 - 2,
    "a_sfixed32": -7,
    "a_sfixed64": -8,
    "a_float": 0.1,
    "a_double": 0.1,
    "a_nan": float("inf"),
    "a_bool": False,
    "a_string": 'ä\n"quoted" \\ {x}',
    "a_bytes": bytes(range(256)),
    "a_size": "SMALL",
    "a_diet": "STEAK",
    "a_cage": CAGE,
    "r_int32": [1, -2, 2**31 - 1],
    "r_sint64": [-(2**63), 2**63 - 1],
    "r_uint32": [0, 2**32 - 1],
    "r_float": [0.5, -1e-30],
    "r_double": [1e300],
    "r_bool": [True, False, True],
    "r_string": ["a", "", "c"],
    "r_size": ["LARGE", "SMALL"],
    "r_cage": [CAGE, {}],
    "r_fixed64": [1, 2**64 - 1],
    "class": 77,
    "operator": ["+"],
    "new": {"a_int32": 4, "needed": 0},
    "CamelCase": -0.0,
    "needed": 1,
}


def shown(zoo) -> list[str]:
    """What zoo.cpp has to print of a ZooParameter."""

    def text(value) -> str:
        if isinstance(value, bool):
            return str(int(value))
        if isinstance(value, float):
            return f"{value:.17g}"
        if isinstance(value, str | bytes):
            return (value.encode() if isinstance(value, str) else value).hex()
        return str(value)

    def one(message, field: str, name: str) -> str:
        return f"{name} {'set' if message.HasField(field) else 'unset'} {text(getattr(message, field))}"

    def many(name: str) -> str:
        return " ".join([f"{name} list", *(v if isinstance(v, str) else text(v) for v in getattr(zoo, name))])

    names = [field.name for field in zoo.DESCRIPTOR.fields]
    texts = ("a_string", "a_bytes", "a_cage")
    single = [name for name in names if name.startswith("a_") and name not in texts]
    lines = [one(zoo, name, name) for name in single]
    lines.append(one(zoo, "CamelCase", "camelcase"))
    lines += [one(zoo, name, name) for name in ("class", "a_string", "a_bytes")]
    lines += [one(zoo.a_cage, name, f"a_cage.{name}") for name in ("width", "bars")]
    lines.append(one(zoo.new, "a_int32", "new.a_int32"))
    lists = [name for name in names if name.startswith("r_") and name != "r_cage"]
    lines += [many(name) for name in [*lists, "operator"]]
    lines.append(" ".join(["r_cage list", *(f"{c.width}/{len(c.animals)}" for c in zoo.r_cage)]))
    return lines


# What zoo.cpp's wrong texts leave in the log.
REASONS = [
    r'LayerParameter: 2:10 : .*Enum type "caffe\.ZooParameter\.Size" has no value named HUGE\.',
    r'ZooParameter: 2:10 : .*Enum type "caffe\.Diet" has no value named HUGE\.',
    r"ZooParameter: .*missing required fields: needed",
    r'ZooParameter: 1:\d+ : .*"caffe\.ZooParameter" should not have multiple "needed" fields\.',
    r"ZooParameter: 1:\d+ : .*",
    r"ZooParameter: 1:21 : .*'utf-8' codec can't encode .*",
    r"ZooParameter: 1:10 : .*Couldn't parse integer: x",
]


@pytest.mark.parametrize(
    "fields", [FULL, {"needed": 0}, {"a_cage": {}, "needed": 3}], ids=["full", "empty", "cage"]
)
def test_accessors_agree_with_protobuf(program, zoo, tmp_path, capfd, fields):
    message = zoo.layer_parameter("Zoo", zoo_param=fields, loss_weight=[1, 0.5], phase="TEST")
    wire = message.SerializeToString()
    # Again, with some fields in the other form: the last number wins, lists and messages are merged.
    again = (
        type(message.zoo_param)(needed=5, a_cage={"width": 8}).SerializeToString() + b"\xaa\x01\x02\x09\x08"
    )
    twice = wire + b"\x8a\x7d" + bytes([len(again)]) + again  # zoo_param, with r_int32: [9, 8] packed
    mixed = wire + field(2001, of_other_types(message.zoo_param))
    for i, data in enumerate((wire, twice, mixed) if fields is FULL else (wire, twice)):
        paths = [tmp_path / f"{name}{i}" for name in ("in", "text", "out", "prototxt", "parsed")]
        paths[0].write_bytes(data)
        paths[3].write_text(f"# a comment\n{text_format.MessageToString(message)}")
        with TestCase().assertLogs("caffe") as logged:
            program(*paths)
        expected = type(message).FromString(data)
        lines = shown(expected.zoo_param)
        said = capfd.readouterr().out.splitlines()
        assert said == ["type set Zoo", *lines, *lines, *shown_fields(expected.zoo_param)]
        for record, reason in zip(logged.records, REASONS, strict=True):
            assert re.fullmatch(rf"Error parsing text-format caffe\.{reason}", record.getMessage())
        assert isinstance(services.take_failure(), DecodeError)
        written = type(message).FromString(paths[2].read_bytes())
        for one in (written, expected):
            one.DiscardUnknownFields()
        assert written == expected
        known = re.sub(r"^ +\d+: .*\n", "", paths[1].read_text(), flags=re.M)
        assert known == text_format.MessageToString(expected, as_utf8=False)
        assert type(message).FromString(paths[4].read_bytes()) == message


def test_no_accessor_is_a_symbol(library):
    """No symbol of a message's own may remain: classes of one name from two .protos would share it."""
    symbols = subprocess.run(
        ["nm", "-C", library.parent / "stock_view.o"], capture_output=True, text=True
    ).stdout
    shared = [line for line in symbols.splitlines() if " W " in line and "caffe::LayerParameter::" in line]
    assert [
        line for line in shared if "~LayerParameter" not in line and "LayerParameter const&" not in line
    ] == []


# ------------------------------------------------------------------------------------------------------------ .protos


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
    """filler.hpp reads it; a fork may have given its number away."""
    folder = layer_with(tmp_path / "old", caffe=OLD_FILLER % own)
    message = parameters(folder).layer_parameter("Old", filler={"variance_norm": "AVERAGE", "std": 2})
    kind = type(message.filler)
    assert message.filler.variance_norm == kind.AVERAGE and kind().variance_norm == kind.FAN_IN
    assert kind().sparse == -1 and (not own or kind().diagonal == 3)
    header = (folder / "include" / "caffe" / "proto" / "caffe.pb.h").read_text()
    assert "variance_norm() const" in header and "FillerParameter_VarianceNorm_FAN_OUT" in header


def test_fillers_read_the_layers_own_messages():
    """In the core they would read a fork's fields by the numbers of stock Caffe's messages."""
    readers = [f.name for f in (ROOT / "src" / "caffe").glob("*.cpp") if "FillerParameter" in f.read_text()]
    assert "GetFiller(const FillerParameter& param) {" in (ROOT / "include/caffe/filler.hpp").read_text()
    assert not readers


def test_a_layer_parameter_of_2014_is_refused(tmp_path):
    """Its fields have other numbers: the core would read one for another."""
    old = "message LayerParameter { repeated string bottom = 2; optional string name = 4; optional int32 type = 5; }"
    (tmp_path / "caffe.proto").write_text(f"package caffe;\n{old}\n")
    with pytest.raises(ProtoError, match=r"LayerParameter\.bottom has the number 2, in stock Caffe it is 3"):
        merged(tmp_path)

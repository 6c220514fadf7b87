"""Caffe layers' messages: the C++ accessors, compared with protobuf's own runtime."""

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
from support.compiler import CXX
from support.protos import layer_with, parameters
from support.wire import field, of_other_types, shown_fields
from support.workshop import core_archives, core_includes, made_once

from cuffi.caffe_files.parameters import Parameters
from cuffi.caffe_layers.call import services

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
    ffi.cdef((ROOT / "cuffi/caffe_layers/include/caffe/layer_record.h").read_text())
    host = services.Services(ffi, ffi.dlopen(None), cuda=False)
    loaded.zoo.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p)]
    return lambda *paths: loaded.zoo(host.address, (ctypes.c_char_p * len(paths))(*map(os.fsencode, paths)))


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
    """zoo.cpp's expected output for a ZooParameter."""

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
    """Otherwise classes of one name from two .protos would share it."""
    symbols = subprocess.run(
        ["nm", "-C", library.parent / "stock_view.o"], capture_output=True, text=True
    ).stdout
    shared = [line for line in symbols.splitlines() if " W " in line and "caffe::LayerParameter::" in line]
    assert [
        line for line in shared if "~LayerParameter" not in line and "LayerParameter const&" not in line
    ] == []


# ------------------------------------------------------------------------------------------------------------ .protos

"""A library has the digests of all files of its interface to Python."""

import re

import pytest
from conftest import FOLDERS, ROOT

import build_ffi
from cuffi import edge as _edge
from cuffi.runtime.library import Library


@pytest.mark.parametrize(
    ("layer", "old"),
    [("round", "all"), ("round", "before digests"), ("smooth_l1_loss", "all"), ("smooth_l1_loss", "caffe")],
)
def test_built_by_another_version_of_the_toolkit(layer, old, tmp_path):
    """The error comes at loading. If structs had another layout, Python would write the wrong memory."""
    library = FOLDERS[layer] / "_host.abi3.so"
    every, caffe = (word.encode() for word in _edge.digests(ROOT, "caffe_layers").split())
    was, becomes = {
        "all": (every, every[::-1]),
        "caffe": (caffe, caffe[:-8] + caffe[:-9:-1]),
        "before digests": (b"\0caffe_edge\0", b"\0caffe_efge\0"),
    }[old]
    (tmp_path / "my" / layer).mkdir(parents=True)
    there = tmp_path / "my" / layer / library.name
    text = library.read_bytes()
    assert was in text
    there.write_bytes(text.replace(was, becomes))
    with pytest.raises(RuntimeError) as said:
        Library(layer, f"my.{layer}", there.parent, "host", ())
    wanted = (
        f"{layer}: {there} was built by another version of the toolkit. Type `make LAYERS_DIR={tmp_path}/my "
    )
    assert str(said.value).startswith(f"{wanted}LAYERS={layer}`"), said.value


@pytest.mark.parametrize(
    ("header", "known"),
    [
        ("tests/fixtures/kernels/loops/loops.h", _edge.EVERY),
        ("cuffi/caffe_layers/core/caffe_layer.h", _edge.EVERY + _edge.structs()["caffe_layers"].files),
    ],
)
def test_the_digests_are_of_all_that_the_edge_includes(header, known):
    """Otherwise a header could change, and an older library would be taken for a new one."""
    functions = build_ffi.parse_declarations(ROOT / header)
    source, _ = build_ffi.wrapper_source(ROOT / header, functions, None)
    named = [*re.findall(r'#include "([^"]+)"', source), "ffi_guard.h", "ffi_run.h"]
    assert all_included(named) <= {header, *known}


def test_the_digest_of_the_short_way_is_of_all_that_it_includes():
    assert all_included(["call.cpp", *_edge.wings_sources()]) == set(_edge.call_files())


def all_included(named: list[str]) -> set[str]:
    """These files and all that they include by quotes."""
    found = set()
    while named:
        name = named.pop()
        place = next(
            place
            for place in (ROOT, ROOT / "src/edge", ROOT / "include", ROOT / "cuffi/caffe_layers/include")
            if (place / name).exists()
        )
        file = (place / name).relative_to(ROOT).as_posix()
        found.add(file)
        named += re.findall(r'#include "([^"]+)"', (ROOT / file).read_text())
    return found

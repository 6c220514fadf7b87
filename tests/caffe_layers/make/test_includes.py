"""Includes of forks that do not name a file of the layer."""

import pytest
from support.typed import not_none

from cuffi.caffe_layers.make.includes import CUDA_NAMES, ELSEWHERE, HEADERS_HERE, NOTHING, spelled_here


@pytest.mark.parametrize(
    ("include", "is_nothing", "is_cudas"),
    [
        ("caffe/solver.hpp", True, False),
        ("caffe/layers/image_data_layer.hpp", True, False),
        ("caffe/layers/data_layer.hpp", True, False),
        ("opencv2/core/core.hpp", True, False),
        ("google/protobuf/text_format.h", True, False),
        ("thrust/device_vector.h", True, False),
        ("caffe/layers/pooling_layer.hpp", False, False),
        ("caffe/solver.hpp.bak", False, False),
        ("device_functions.h", False, True),
        ("sm_20_atomic_functions.h", False, True),
        ("cublas_v2.h", False, False),
        ("vector", False, False),
    ],
)
def test_which_names_are_known(include, is_nothing, is_cudas):
    assert (bool(NOTHING.match(include)), bool(CUDA_NAMES.match(include))) == (is_nothing, is_cudas)


def test_a_library_of_cudas_is_told_from_its_plain_headers():
    assert not_none(CUDA_NAMES.match("curand.h"))["library"] == "curand"
    assert not_none(CUDA_NAMES.match("vector_types.h"))["library"] is None


@pytest.mark.parametrize(
    ("include", "header"),
    [
        ("boost/random/uniform_int_distribution.hpp", "boost/random.hpp"),
        ("boost/algorithm/string/split.hpp", "boost/algorithm/string.hpp"),
        ("boost/smart_ptr/shared_ptr.hpp", "boost/shared_ptr.hpp"),
        ("boost\\scoped_array.hpp", "boost/names.hpp"),
        ("boost/geometry.hpp", "boost/geometry.hpp"),
        ("google/protobuf/repeated_field.h", "caffe/proto/message.hpp"),
        ("google/protobuf/io/coded_stream.h", "google/protobuf/io/coded_stream.h"),
    ],
)
def test_the_header_that_an_include_means(include, header):
    assert spelled_here(include) == header


def test_each_header_that_stands_for_others_is_there_and_hides_none():
    places = (HEADERS_HERE, HEADERS_HERE / "legacy")
    assert all(any((place / header).is_file() for place in places) for header in ELSEWHERE.values())
    names = [f.relative_to(places[1]).as_posix() for f in places[1].rglob("*") if f.is_file()]
    assert [name for name in names if spelled_here(name) != name] == []


def test_other_slashes_and_letters():
    assert (HEADERS_HERE / "caffe/filler.hpp").is_file()
    assert spelled_here("caffe\\Filler.hpp") == "caffe/filler.hpp"
    assert spelled_here("caffe\\Own.hpp") == "caffe/Own.hpp"
    assert spelled_here("caffe/filler.hpp") == "caffe/filler.hpp"

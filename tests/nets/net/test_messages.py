"""Parts of a prototxt as stock Caffe's messages."""

import pytest

from cuffi.base import CaffeValueError
from cuffi.caffe_files.prototxt import parse
from cuffi.nets.net.messages import layer_parameter, message_of


def first(text: str):
    (field,) = parse(text, "x.prototxt").fields
    return field.value


def test_a_layers_message_and_the_fields_that_stock_caffe_does_not_have():
    text = 'layer {\n name: "a" type: "Pooling"\n pooling_param { kernel_size: 3 engine: CUDNN own: 1 } other: 2 }'
    message, unknown = layer_parameter(first(text))
    assert (message.name, message.pooling_param.kernel_size, message.pooling_param.HasField("engine")) == (
        "a",
        3,
        False,
    )
    assert [(one.path, one.line) for one in unknown] == [("pooling_param.own", 3), ("other", 3)]


def test_a_field_that_a_message_does_not_have_is_an_error_unless_it_is_ignored():
    node = first("include {\n stage: 'a'\n own: 3 }")
    assert message_of(node, "NetStateRule", ignore=("own",)).stage == ["a"]
    with pytest.raises(CaffeValueError, match=r"x\.prototxt, line 3: .*ignore=\('own',\)"):
        message_of(node, "NetStateRule")


def test_a_wrong_value_names_the_file_and_line():
    with pytest.raises(CaffeValueError, match=r"x\.prototxt, line 2"):
        message_of(first("include {\n min_level: 'two' }"), "NetStateRule")

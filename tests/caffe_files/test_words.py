"""Words of a prototxt that its messages do not have: the line, the field, and what is meant."""

import pytest

from cuffi import CaffeValueError
from cuffi.caffe_files.parameters import read_fields
from cuffi.caffe_files.prototxt import parse
from cuffi.nets.net.messages import STOCK

LISTED = "There are: MAX, AVE, STOCHASTIC"
POOL = "pooling_param {\n pool: %s }"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("type: ReLU", 'line 1: type: expected a text in quotes, "ReLU"'),
        ('name: "a"\nbottom: data', 'line 2: bottom: expected a text in quotes, "data"'),
        (POOL % "MAXX", "line 2: pooling_param.pool: there is no MAXX; did you mean 'MAX'? " + LISTED),
        (POOL % "max", "line 2: pooling_param.pool: there is no max; did you mean 'MAX'? " + LISTED),
        (POOL % '"AVE"', "line 2: pooling_param.pool: expected AVE, without quotes"),
        (POOL % "'q'", "line 2: pooling_param.pool: there is no 'q'. " + LISTED),
    ],
)  # fmt: skip
def test_a_wrong_word_is_told_with_those_that_are_there(text, said):
    with pytest.raises(CaffeValueError) as error:
        read_fields(parse(text, ""), STOCK.message("LayerParameter"))
    assert str(error.value) == said


@pytest.mark.parametrize("word, value", [("MAX", 0), ("AVE", 1), ("1", 1), ("0x2", 2)])
def test_right_words_are_read(word, value):
    message = STOCK.message("LayerParameter")
    assert read_fields(parse(f"type: 'x' {POOL % word} name: \"\"", ""), message) == []
    assert message.pooling_param.pool == value and message.type == "x"

"""The types that a source registers."""

import pytest

REGISTERED = "REGISTER_LAYER_CLASS(One);\n"


@pytest.mark.parametrize(
    ("text", "is_caffe"),
    [
        (REGISTERED, True),
        ("  REGISTER_LAYER_CREATOR(One, GetOne);", True),
        ("\tINSTANTIATE_CLASS (OneLayer);", True),
        ('x\nextern "C" int64_t caffe_test_run(int n);', True),
        ("// REGISTER_LAYER_CLASS(One);", False),
        ("REGISTER_LAYER_CLASS_OF(One);", False),
        ("#define REGISTER_LAYER_CLASS(x)", False),
    ],
)
def test_what_registers(folder, text, is_caffe):
    assert folder(**{"one.cpp": text, "one.cu": ""}).kind.name == ("caffe" if is_caffe else "native")

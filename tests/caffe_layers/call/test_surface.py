"""What the attributes and methods of a Caffe layer's module are given that they cannot take: each error is ours, and
names layer and argument. On layers of caffe_zoo."""

import cuffi.normalize
import pytest
import torch
from support.zoo import FILLER, raises

from cuffi import CaffeError, CaffeRuntimeError, CaffeTypeError, CaffeValueError, Layer, adopt, caffe_layer
from cuffi.caffe_layers.call import instance

NO_LISTS = (None, "three", 3, True, 2.5, {"a": 1}, object(), torch.zeros(2), ["a", None])


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("name", ["lr_mult", "propagate_down"])
def test_lists(zoo, name, called):
    m = zoo.Affine(zoo_param=FILLER)
    if called:
        m(torch.randn(2, 3))
    for value in NO_LISTS:
        with raises(CaffeTypeError, rf": {name}: expected a list of"):
            setattr(m, name, value)
    setattr(m, name, [1, 0.5] if name == "lr_mult" else (True,))
    assert getattr(m, name) == ([1, 0.5] if name == "lr_mult" else [True])
    m(torch.randn(2, 3))


def test_what_is_set_later_counts(zoo):
    m = zoo.Affine(zoo_param=FILLER)
    m.lr_mult = [0, 1]
    x = torch.randn(2, 3, requires_grad=True)
    m(x)
    assert [p.requires_grad for p in m.parameters()] == [False, True]
    m.propagate_down = [False]
    m(x).sum().backward()
    assert x.grad is None and m.blob1.grad is not None


def test_devices_and_dtypes_of_setup(zoo):
    for device in ("three", -1, 2.5, [], {}, "", "\0", "cuda:77", torch.zeros(2), object()):
        with raises(CaffeTypeError, ": setup: device: expected a device"):
            zoo.Affine(zoo_param=FILLER).setup((2, 3), device=device)
    for dtype in ("float32", 3, [], torch.zeros(2), torch.float16, float):
        with raises(CaffeTypeError, ": dtype: Caffe layers compute in float32 or float64"):
            zoo.Affine(zoo_param=FILLER).setup((2, 3), dtype=dtype)


def test_paths_and_names(zoo):
    m = zoo.Affine(zoo_param=FILLER)
    for path in (None, 3, True, 2.5, [], {}, object(), torch.zeros(2), "", "\0"):
        with pytest.raises(
            (CaffeTypeError, CaffeValueError), match=": load_caffemodel: path: expected a path"
        ):
            m.load_caffemodel(path, "a")
    for name in ("bottom", "top"):
        for value in (3, 2.5, object(), torch.zeros(2), [None], {1: 2}):
            with pytest.raises((CaffeTypeError, CaffeValueError), match=f": {name}"):
                zoo.Affine(zoo_param=FILLER, **{name: value})


@pytest.mark.parametrize("value", [None, 3, 2.5, [], {}, b"x", object(), "nowhere", "", "sys"])
def test_what_a_layers_author_says(value):
    with pytest.raises(CaffeError, match="Layer: module: expected"):
        Layer(value)
    with pytest.raises(CaffeError, match="module: expected"):
        caffe_layer(value, "Affine")
    if not isinstance(value, str):
        with pytest.raises(CaffeTypeError, match="adopt: package: expected"):
            adopt(value)
        with pytest.raises(CaffeTypeError, match="normalize: type: expected"):
            caffe_layer(cuffi.normalize.__name__, value)


def test_torch_jit_script_is_refused_by_name(zoo):
    for module in (zoo.Affine(zoo_param=FILLER), torch.nn.Sequential(zoo.Affine(zoo_param=FILLER))):
        with raises(CaffeRuntimeError, ": torch.jit.script cannot .*torch.export"):
            torch.jit.script(module)


def test_constants_of_the_header_that_python_has_too():
    library = cuffi.normalize.Normalize.layer.library("host").lib
    assert (instance.MOST_AXES, instance.NO_TOKEN) == (library.CAFFE_MOST_AXES, library.CAFFE_NO_TOKEN)

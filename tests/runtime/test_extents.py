"""The tensors' sizes in a header: no C function gets a smaller tensor."""

import importlib
import json
import sys

import pytest
import torch
from support.points import LAYERS, PACKAGE, cases_of, differentiable, layer_object, points, random_like

from cuffi.runtime.cases import results
from tools.make.declarations import BuildError, parse_declarations

NATIVE = [name for name in LAYERS if cases_of(name) and not cases_of(name)[0].has_modes]
# Bytes for a kernel's own partial sums: how many, no formula says.
WORKSPACES = {"workspace", "partial_sums"}

HEADER = """
// a, b: [rows, 2 * columns] of dtype; c: [threads of the grid][12]; d: [rows] of prose, e [missing]
int first(const void *a, void *b, const float *c, float *d, float *e, int64_t rows, int columns, int dtype,
          void *stream);

/* a: [rows / (columns + 1)], and
   f: [rows, columns] with strides [step, 1] */
int second(const void *a, const void *f, float *d, int64_t rows, int columns, int64_t step, int dtype, void *stream);
int third(const float *a, int64_t rows, void *stream);
"""


def test_a_number_may_be_const_and_elements_may_be_halves(tmp_path):
    text = "// x, y: float16\nint f(const uint16_t *x, uint16_t *y, const int n, void *stream);\n"
    (tmp_path / "x.h").write_text(text + "int g(uint16_t *x, void *stream);\n")
    functions = parse_declarations(tmp_path / "x.h")
    assert functions["f"]["parameters"][:3] == [
        ("const uint16_t *", "x"),
        ("uint16_t *", "y"),
        ("int", "n"),
    ]
    assert functions["f"]["elements"] == {"x": ["float16"], "y": ["float16"]}
    assert functions["g"]["elements"] == {}


def test_the_dtypes_of_a_template(tmp_path):
    text = "// x: one of float32, int8\n// y: one of int8\nint f(const void *x, void *y, int dtype, void *stream);\n"
    (tmp_path / "x.h").write_text(text)
    (elements,) = [f["elements"] for f in parse_declarations(tmp_path / "x.h").values()]
    assert elements == {"x": ["float32", "int8"], "y": ["int8"]}


def test_headers_are_read(tmp_path):
    (tmp_path / "x.h").write_text(HEADER)
    functions = parse_declarations(tmp_path / "x.h")
    a_and_b = [["rows", "2 * columns"], []]
    found = json.loads(json.dumps({name: f["extents"] for name, f in functions.items()}))
    assert found == {
        "first": {"a": a_and_b, "b": a_and_b, "d": [["rows"], []]},
        "second": {
            "a": [["rows // (columns + 1)"], []],
            "f": [["rows", "columns"], ["step", "1"]],
            "d": [["rows"], []],
        },
        "third": {},
    }


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("gbk"),
        lambda text: text.replace("\n", "\r\n").encode(),
    ],
    ids=["byte order mark", "not UTF-8", "CRLF"],
)
def test_headers_of_other_editors(tmp_path, encode):
    text = "// 输入: what goes in\n// x: [n]\nint f(const float* x, int n, void* stream);\n"
    (tmp_path / "x.h").write_bytes(encode(text))
    assert parse_declarations(tmp_path / "x.h")["f"]["extents"] == {"x": (["n"], [])}
    (tmp_path / "x.h").write_bytes(text.encode("utf-16"))
    with pytest.raises(BuildError, match=r"x\.h: error: not a list of C declarations"):
        parse_declarations(tmp_path / "x.h")


@pytest.mark.parametrize("layer", NATIVE)
def test_each_tensor_of_the_own_layers_has_its_extents(layer):
    layer = layer_object(layer)
    for function, declared in layer.library(layer.backends()[0]).signatures.items():
        pointers = {name for kind, name in declared["parameters"] if kind.endswith("*") and name != "stream"}
        assert pointers - WORKSPACES <= set(declared["extents"]), function


def launches(point, monkeypatch) -> list:
    """(launcher, arguments) of each C call that the case's function and its backward make."""
    made, layer = [], point.layer_object
    for function in layer.library("host").signatures:
        launcher = layer.launcher(function)
        if launcher.signature.returns_number:
            continue

        def spy(*arguments, launcher=launcher):
            made.append((launcher, arguments))
            return launcher.call(*arguments)

        monkeypatch.setitem(vars(layer), function, spy)
    # A plan, which an earlier call left, does not come by the launchers.
    modules = [m for name, m in sys.modules.items() if f"{name}.".startswith(f"{layer.module}.")]
    for value in (value for module in modules for value in vars(module).values()):
        if hasattr(getattr(getattr(value, "operator", None), "short", None), "clear"):
            value.operator.short.clear()
    arguments = point.arguments(grad=True)
    tops = results(point.call(*arguments))
    if point.case.gradient != "none":
        torch.autograd.grad(tops, differentiable(arguments), random_like(tops))
    return made


@pytest.mark.parametrize("native", list(points(NATIVE, devices=("cpu",), every_input=True)), ids=str)
def test_one_element_less_is_an_error(native, monkeypatch, runtime):
    """Each tensor of each C call that the case makes, without its last element."""
    made = launches(native, monkeypatch)
    monkeypatch.undo()
    assert made
    for launcher, arguments in made:
        for place, (_, name) in enumerate(launcher.signature.passed):
            tensor = arguments[place]
            if not isinstance(tensor, torch.Tensor) or name in WORKSPACES or not tensor.numel():
                continue
            steps = zip(tensor.shape, tensor.stride(), strict=True)
            less = torch.zeros(sum((size - 1) * step for size, step in steps), dtype=tensor.dtype)
            wrong = [*arguments[:place], less, *arguments[place + 1 :]]
            wanted = rf"{native.layer}: {name}: expected memory for"
            with torch.no_grad(), pytest.raises(runtime.CaffeValueError, match=wanted):
                launcher.call(*wrong)


@pytest.mark.parametrize("count", [5, 10**9, 2**62, -1, -(2**63)])
def test_a_count_beyond_the_tensors(count):
    layer = importlib.import_module(f"{PACKAGE}.sigmoid").layer
    x = torch.zeros(4)
    with pytest.raises(ValueError, match="sigmoid: bottom: expected memory for"):
        layer.sigmoid_forward(x, torch.zeros(4), count)
    layer.sigmoid_forward(x, x, 4)
    assert x.tolist() == [0.5] * 4


def test_c_names_the_tensor_that_is_too_small_and_its_sizes():
    sigmoid = importlib.import_module(f"{PACKAGE}.sigmoid").layer
    x = torch.zeros(4)
    assert sigmoid.launcher("sigmoid_forward").call.too_small(x, torch.zeros(3), 4) == (1, (4,))
    assert sigmoid.launcher("sigmoid_forward").call.too_small(x, x, 4) is None
    depthwise = importlib.import_module(f"{PACKAGE}.depthwise_conv").layer
    given = torch.zeros(1, 2, 6, 4), torch.zeros(2, 1, 3, 3), None, torch.zeros(1, 2, 5, 4)
    forward = depthwise.launcher("depthwise_conv_forward").call
    for stride, sizes in ((1, (1, 2, 6, 4)), (0, (1, 2, -1, -1))):  # no formula has a value by a stride of 0
        numbers = (1, 2, 6, 4, 3, 3, stride, stride, 1, 1, 1, 1, 0, 0)
        assert forward.too_small(*given, *numbers) == (3, sizes)

"""make new FROM=: the names of launchers and of Python's functions."""

import pytest
from support.new_layer import LOOP, derive

from tools.new_layer.caffe_file import split
from tools.new_layer.from_caffe import python_functions
from tools.new_layer.from_kernels import make_launchers
from tools.new_layer.naming import launcher_name, snake_case


def test_names():
    assert snake_case("MaxPoolForward") == "max_pool_forward" and snake_case("ROIPool") == "roi_pool"
    assert snake_case("kernel_channel_max") == "kernel_channel_max"
    assert launcher_name("relu", "ReLUForward") == "relu_forward"
    assert launcher_name("roi_pool", "ROIPoolForward") == "roi_pool_forward"
    assert launcher_name("softmax", "kernel_exp") == "softmax_kernel_exp"


def test_names_that_clash():
    body = "{ x[0] = 0; }\n"
    launchers, _ = make_launchers(
        "foo",
        split(
            f"namespace a {{ __global__ void Run(float* x) {body} }}\n"
            f"namespace b {{ __global__ void Run(float* x) {body} }}\n"
            f"__global__ void foo_walk(float* x) {body}",
            "foo_layer.cu",
        ),
    )
    assert [x.name for x in launchers] == ["foo_run", "foo_run_2", "foo_walk_launch"]
    assert [x.callee for x in launchers] == ["a::Run", "b::Run", "foo_walk"]


@pytest.mark.parametrize(
    ("kernels", "functions"),
    [
        ("Run Walk", {"foo": ["foo_run", "foo_walk"]}),
        ("FooForward FooBackward Other", {"foo": ["foo_forward", "foo_backward"]}),
        ("a_b_forward a_b_backward", {"a_b": ["foo_a_b_forward", "foo_a_b_backward"]}),
        (
            "ForwardTrain ForwardFooTrain",
            {"foo_train": ["foo_forward_train"], "foo_train_": ["foo_forward_foo_train"]},
        ),
        ("not_filled_in_forward", {"not_filled_in_": ["foo_not_filled_in_forward"]}),
    ],
)
def test_functions_of_python_have_names_of_their_own(kernels, functions):
    text = "".join(
        f"__global__ void {name}(const int n, float* x) {{ {LOOP} }}\n"
        f"void L_{name}() {{ {name}<<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, x); }}\n"
        for name in kernels.split()
    )
    made = python_functions("foo", list(derive(text)[0].values()))
    assert {name: [launcher.name for launcher in several] for name, several in made.items()} == functions

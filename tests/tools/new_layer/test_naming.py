"""The names of launchers."""

from tools.new_layer.from_kernels import make_launchers
from tools.new_layer.kernel_file import kernels_of
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
        kernels_of(
            f"namespace a {{ __global__ void Run(float* x) {body} }}\n"
            f"namespace b {{ __global__ void Run(float* x) {body} }}\n"
            f"__global__ void foo_walk(float* x) {body}",
            "foo_layer.cu",
        ),
    )
    assert [x.name for x in launchers] == ["foo_run", "foo_run_2", "foo_walk_launch"]
    assert [x.callee for x in launchers] == ["a::Run", "b::Run", "foo_walk"]

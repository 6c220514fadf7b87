"""What a launcher uploads before each launch."""

import pytest

from tools.new_layer.instances import Template
from tools.new_layer.kernel_file import kernels_of
from tools.new_layer.kernel_launcher import NoLauncher
from tools.new_layer.launcher_arguments import Arguments
from tools.new_layer.symbols import Symbol
from tools.new_layer.uploads import add_uploads


def uploads_of(*symbols):
    file = kernels_of("struct P { float a; int b; }; __global__ void k(float* y) {}", "/x/foo.cu")
    ((kernel, scope, template),) = file.kernels
    arguments = Arguments(file, kernel, Template(file, kernel, scope, [], template))
    return add_uploads(arguments, [Symbol(*each, "__constant__", False) for each in symbols]), arguments


def test_a_tensor_for_each_variable():
    uploads, arguments = uploads_of(
        ("w", "float", "one::", (3, 3)),
        ("v", "float4", "", (2,)),
        ("p", "P", "", (2,)),
        ("to", "const float*", "", ()),
    )
    assert [u.count for u in uploads] == [9, 8, 16, 0]
    kinds = {a.name: a.type.removeprefix("const ") for a in arguments.all}
    assert kinds == {"w_values": "float *", "v_values": "float *", "p_values": "uint8_t *", "to": "float *"}
    assert "static_assert(sizeof(one::w) == 9 * sizeof(*w_values)" in uploads[0].statement()
    assert (
        "cudaMemcpyToSymbolAsync(::to, &to, sizeof(::to), 0, cudaMemcpyHostToDevice" in uploads[3].statement()
    )


@pytest.mark.parametrize(
    ("symbol", "why"),
    [
        (("w", "float", "", None), "whose size is unknown"),
        (("w", "Other", "", (2,)), "C can't give it"),
    ],
)
def test_what_cannot_be_uploaded(symbol, why):
    with pytest.raises(NoLauncher, match=why):
        uploads_of(symbol)

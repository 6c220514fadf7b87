"""The launches of a source."""

from support.rewriting import analyse


def test_analysis_of_launches():
    text = """
template <typename T, int N>
__global__ void k(const int n, const std::map<T, int>* in, T (*f)(T), T* out = nullptr) {}
void Layer::Forward(int n) {
  k<float, (N > 2)><<<dim3(n, 2), 64, n * sizeof(float), stream>>>(n, in /* i */, f<a, b>, out);
  k<double, 1><<<
      GRID(n)>>>(n, in);
}
"""
    (kernel,) = analyse(text, "x.cu")
    assert (kernel.name, kernel.path, kernel.line) == ("k", "x.cu", 3)
    assert [tuple(p) for p in kernel.parameters] == [
        ("const int", "n"),
        ("const std::map<T, int>*", "in"),
        ("T (* )(T)", "f"),
        ("T*", "out"),
    ]
    first, second = kernel.launches
    assert (
        first.line == 5 and first.function == "Forward" and first.template_arguments == ("float", "(N > 2)")
    )
    assert (first.grid, first.block, first.shmem, first.stream) == (
        "dim3(n, 2)",
        "64",
        "n * sizeof(float)",
        "stream",
    )
    assert first.arguments == ("n", "in", "f<a, b>", "out")
    assert second.line == 6 and (second.grid, second.block) == ("GRID(n)", "")

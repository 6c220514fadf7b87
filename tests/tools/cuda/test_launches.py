"""The launches of a source."""

from support.rewriting import analyse

from tools.cuda.source import Source


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


def test_a_launch_behind_a_macro_that_ends_its_own_statement():
    """As error checks are written without a semicolon, in a header that nobody reads, too."""
    text = """__global__ void k(int n);
namespace a { namespace b { template <typename T, int N> __global__ void t(int n); } }
void f() {
  k<<<1, 2>>>(1);
  CHECK_LAST

  k<<<1, 2>>>(
      2);
  CHECK(here, "text") a::b::t<T<int>, 3><<<1, 2, 3>>>(3);
  CHECK_LAST
}
"""
    source = Source(text, "k.cu")
    assert not source.problems
    assert [(x.kernel, x.arguments) for x in source.launches] == [("k", ("1",)), ("k", ("2",)), ("t", ("3",))]
    (template,) = (x for x in source.launches if x.kernel == "t")
    assert text[template.start :].startswith("a::b::t") and template.template_arguments == ("T<int>", "3")

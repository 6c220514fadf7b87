"""The expressions of a launch, with what its launcher has: (grid, block, shared memory)."""

import pytest
from support.new_layer import derive

KERNEL = "__global__ void k(float* o, int w) { o[blockIdx.x] = w; }\n"


def geometry(host, before="", parameters="float* o, int n, int m"):
    launcher = derive(f"{before}{KERNEL}void run({parameters}) {{ {host} }}\n")[0]["k"]
    return launcher.grid, launcher.block, launcher.shared


@pytest.mark.parametrize(
    ("host", "before", "found"),
    [
        ("k<<<1, 256>>>(o, 256);", "", ("1", "256")),
        ("k<<<2 * 8, 8>>>(o, 2 * 8);", "", ("2 * 8", "8")),
        ("k<<<1, B>>>(o, B);", "#define B 256\n", ("1", "B")),
        ("k<<<1, B>>>(o, B);", "const int A = 3, B = 64;\n", ("1", "B")),
        ("k<<<1, B>>>(o, B);", "int B{64};\n", ("1", "B")),
        ("k<<<1, B>>>(o, B);", "enum { A = 3, B = A * 8 };\n", ("1", "B")),
        ("k<<<1, B>>>(o, B);", "#define B 32\n#undef B\n#define B 64\n", ("1", "B")),
        ("using namespace c; k<<<1, B>>>(o, B);", "namespace c { constexpr int B = 64; }\n", ("1", "c::B")),
        ("const int B = 256; k<<<1, B>>>(o, 256);", "", ("1", "int(256)")),
        # A size of this program, perhaps.
        ("const int B = 256; k<<<1, B>>>(o, B);", "", ("1", "block")),
        ("const int B = 8 * W; k<<<B, 32>>>(o, n);", "#define W 4\n", ("int(8 * W)", "32")),
        ("{ int B = 4; } k<<<1, B>>>(o, B);", "const int B = 7;\n", ("1", "B")),
        # Read as a function's declaration, it would declare B.
        ("dim3 g(n, m*B); k<<<1, B>>>(o, B);", "#define B 64\n", ("1", "B")),
        (
            "int B = 64; int g = UP(n, B); k<<<1, B>>>(o, 64);",
            "#define UP(a, b) (((a) + (b) - 1) / (b))\n",
            ("1", "int(64)"),
        ),
        # A macro that this function does not use.
        ("int B = 64; k<<<1, B>>>(o, 64);", "#define OTHER(x) B = x\n", ("1", "int(64)")),
    ],
)
def test_a_constant_stays_itself_where_it_is_an_argument_too(host, before, found):
    assert geometry(host, before)[:2] == found


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("k<<<n, 32>>>(o, n);", ("w", "32", "0")),
        ("k<<<2*n+1, 1>>>(o, n+1);", ("2*static_cast<int>(int64_t(w) - 1)+1", "1", "0")),
        ("k<<<(n + 1) * 2, 1>>>(o, n+1);", ("(static_cast<int>(int64_t(w) - 1) + 1) * 2", "1", "0")),
        ("k<<<n > 4 ? n / 4 : 1, 4, n * sizeof(float)>>>(o, n);", ("w > 4 ? w / 4 : 1", "4", "w * sizeof(float)")),
        ("dim3 b(16, 16); k<<<(n + 15) / 16, b>>>(o, n);", ("(w + 15) / 16", "dim3(16, 16)", "0")),
        ("int64_t q = n; k<<<q * 2, 1>>>(o, q);", ("int64_t(w) * 2", "1", "0")),
        ("unsigned q = n; k<<<q / 2, 1>>>(o, q);", ("unsigned(w) / 2", "1", "0")),
        ("int g = (n + 63) / 64; k<<<g, 64>>>(o, n);", ("int((w + 63) / 64)", "64", "0")),
        ("for (int s = 1; s < n; s *= 2) k<<<1, s>>>(o, s);", ("1", "w", "0")),
        ("unsigned q = int(n); k<<<((q) + 1), 1>>>(o, n);", ("((static_cast<unsigned>(int(w))) + 1)", "1", "0")),
        ("int T = 256; if (n < 9) T = 128; k<<<1, T>>>(o, T);", ("1", "w", "0")),
        ("k<<<n, 1>>>(o, n); k<<<m, 1>>>(o, m);", ("w", "1", "0")),
    ],
)  # fmt: skip
def test_an_argument_gives_its_variable(host, found):
    assert geometry(host) == found


@pytest.mark.parametrize(
    ("host", "before"),
    [
        # For another size than this program's the grid would be too small.
        ("int q = 1000; k<<<(q + 255) / 256, 256>>>(o, q);", ""),
        ("const int q = 1000; int g = (q + 255) / 256; k<<<g, 256>>>(o, q);", ""),
        ("k<<<(N + 255) / 256, 256>>>(o, N);", "#define N 1000\n"),
        ("k<<<m, 1>>>(o, n);", ""),  # no argument tells m
        ("k<<<n, 1>>>(o, n); k<<<8, 1>>>(o, n);", ""),
        ("k<<<c::B, 1>>>(o, c::B);", "namespace c { constexpr int B = 64; }\n"),  # perhaps a constant
        ("const int B = c::B; k<<<B, 1>>>(o, B);", "namespace c { constexpr int B = 64; }\n"),
        ("k<<<B, 1>>>(o, B); }\n#undef B\n#define B 64\nvoid z() {", "#define B 32\n"),
        ("k<<<G, 2>>>(o, n / 2);", "#define G (n + 255) / 256\n"),
        ("k<<<TWICE(n), 2>>>(o, n + m);", "#define TWICE(a) 2 * a\n"),
        ("const int B = 4; RUN;", "const int B = 64;\n#define RUN k<<<B, 32>>>(o, n)\n"),
        ("const int B = 4; RUN;", "#define B 64\n#define RUN k<<<B, 32>>>(o, n)\n#undef B\n#define B 64\n"),
        ("int T = 4; int u = PICK(T); k<<<n * T, 1>>>(o, n);", "#define PICK(x) pick(x)\n"),
        ("RUN(2, n);", "#define RUN(g, n) k<<<g, 32>>>(o, n)\n"),
        ("unsigned char q = n; k<<<q * 2, 1>>>(o, q);", ""),
        ("float q = n; k<<<q / 2, 1>>>(o, q);", ""),
        ("int b = n; n = 4; k<<<b, 1>>>(o, n);", ""),
        ("int T = 4; pick(T); k<<<n * T, 1>>>(o, n);", ""),
        ("int T = 4; auto l = [&] { T = 8; }; l(); k<<<n * T, 1>>>(o, n);", ""),
        ("int T = 4; int& t = T; t = 8; k<<<n * T, 1>>>(o, n);", ""),
        ("int T = 4; SET(T); k<<<n * T, 1>>>(o, n);", "#define SET(x) x = 8\n"),
        ("int T = 4; ALL(); k<<<n * T, 1>>>(o, n);", "#define SET(x) x = 8\n#define ALL() SET(T)\n"),
        ("k<<<n++, 1>>>(o, n);", ""),
    ],
)
def test_what_cannot_be_told_is_left_to_the_caller(host, before):
    assert geometry(host, before)[0] == "grid"


def test_an_argument_that_is_passed_twice_is_left_to_the_caller():
    text = "__global__ void k(float* o, int a, int b) { o[blockIdx.x] = a + b; }\n"
    text += "void run(float* o, int n) { k<<<n, 1>>>(o, n, n); }\n"
    assert derive(text)[0]["k"].grid == "grid"


def test_two_kernels_of_one_name_have_no_launch():
    text = "__global__ void k(int* o, int w) { o[blockIdx.x] = w; }\n"
    assert derive(text + KERNEL + "void run(float* o) { k<<<7, 1>>>(o, 7); }\n")[0]["k"].grid.startswith(
        "dim3(grid_x"
    )


OF_NUMBERS = "template <int N> __global__ void k(float* o, int w) { o[threadIdx.x] = w * N; }\n"
CALLS = "template <int B> void go(float* o, int n) { k<B><<<n, B>>>(o, n); }\n"


@pytest.mark.parametrize(
    ("text", "block", "instances"),
    [
        ("void run(float* o, int n) { k<64><<<n, 64>>>(o, n); }", "64", ["64"]),
        (CALLS + "void run(float* o, int n) { go<64>(o, n); }", "64", ["64"]),
        (CALLS + "void run(float* o, int n) { n > 3 ? go<64>(o, n) : go<32>(o, n); }", "N", ["64", "32"]),
        # which block the instance has that nobody launches is unknown
        ("void run(float* o, int n) { k<8><<<n, 8>>>(o, n); }\ntemplate __global__ void k<4>(float*, int);\n",
         "block", ["8", "4"]),
    ],
)  # fmt: skip
def test_whole_numbers_of_a_template(text, block, instances):
    launcher = derive(OF_NUMBERS + text)[0]["k"]
    assert (launcher.block, [arguments for _, arguments in launcher.instances]) == (block, instances)

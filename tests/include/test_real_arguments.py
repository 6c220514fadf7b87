"""Real numbers given to CUDA's integer functions, to the operators of classes, and to what a file only declares.

Each call must give what the same call gives with an explicit cast. tests/tools/cuda/test_conversions.py compares
that with PTX's rule.
"""

import re

import torch
from support.hard_numbers import HARD, converted
from support.real_numbers import wrong_of

from cuffi import load_inline

# CUDA's functions and what they take (CUDA Math API, integer and SIMD intrinsics; the programming guide for warps).
UNSIGNED = "unsigned int"
FUNCTIONS = {
    "__popc": [UNSIGNED], "__popcll": ["unsigned long long"], "__ffs": ["int"], "__ffsll": ["long long"],
    "__clz": ["int"], "__clzll": ["long long"], "__brev": [UNSIGNED],
    "__brevll": ["unsigned long long"], "__byte_perm": [UNSIGNED] * 3,
    "__mulhi": ["int"] * 2, "__umulhi": [UNSIGNED] * 2, "__mul64hi": ["long long"] * 2,
    "__umul64hi": ["unsigned long long"] * 2, "__mul24": ["int"] * 2, "__umul24": [UNSIGNED] * 2,
    "__sad": ["int", "int", UNSIGNED], "__usad": [UNSIGNED] * 3, "__hadd": ["int"] * 2, "__rhadd": ["int"] * 2,
    "__uhadd": [UNSIGNED] * 2, "__urhadd": [UNSIGNED] * 2, "__funnelshift_l": [UNSIGNED] * 3,
    "__funnelshift_r": [UNSIGNED] * 3, "__funnelshift_lc": [UNSIGNED] * 3, "__funnelshift_rc": [UNSIGNED] * 3,
    "llmax": ["long long"] * 2, "llmin": ["long long"] * 2, "ullmax": ["unsigned long long"] * 2,
    "ullmin": ["unsigned long long"] * 2, "umax": [UNSIGNED] * 2, "umin": [UNSIGNED] * 2, "__int_as_float": ["int"],
    "__uint_as_float": [UNSIGNED], "__longlong_as_double": ["long long"], "__hiloint2double": ["int"] * 2,
    "__int2float_rz": ["int"], "__uint2float_rn": [UNSIGNED], "__ll2float_ru": ["long long"],
    "__ull2double_rd": ["unsigned long long"], "__int2double_rn": ["int"], "__uint2double_rn": [UNSIGNED],
    "__vabs2": [UNSIGNED], "__vadd4": [UNSIGNED] * 2, "__vsads4": [UNSIGNED] * 2, "__vcmpeq2": [UNSIGNED] * 2,
    "__vimax3_s32": ["int"] * 3, "__viaddmin_u32": [UNSIGNED] * 3, "__vimax_s32_relu": ["int"] * 2,
    "__vimin3_s16x2": [UNSIGNED] * 3, "__viaddmax_s16x2_relu": [UNSIGNED] * 3, "__fns": [UNSIGNED, UNSIGNED, "int"],
    "__dp4a": ["int"] * 3, "__dp2a_lo": ["int"] * 3, "__dp2a_hi": [UNSIGNED] * 3, "ldexp": ["double", "int"],
    "ldexpf": ["float", "int"], "scalbn": ["double", "int"], "scalbnf": ["float", "int"], "scalbln": ["double", "long"],
    "__half2float(__int2half_rn": ["int"], "__half2float(__ushort2half_rz": ["unsigned short"],
    "__half2float(__short_as_half": ["short"], "__half2float(__ull2half_rd": ["unsigned long long"],
}  # fmt: skip
# Of the lanes of a warp: each takes the value of lane 1 or its own, so no result is undefined.
OF_WARPS = {
    "__shfl_sync(0xffffffffu, lane, {x})": "int",
    "__shfl_up_sync(0xffffffffu, lane, {x})": UNSIGNED,
    "__shfl_down_sync(0xffffffffu, lane, {x})": UNSIGNED,
    "__shfl_xor_sync(0xffffffffu, lane, {x})": "int",
    "__shfl(lane, {x})": "int",
    "__shfl_xor(lane, {x}, 16)": "int",
    "__ballot_sync(0xffffffffu, {x})": "int",
    "__any_sync(0xffffffffu, {x})": "int",
    "__all_sync(0xffffffffu, {x})": "int",
    "__ballot({x})": "int",
    "__syncthreads_count({x})": "int",
}


def of_functions() -> list[tuple[str, str]]:
    """Each function with x in each of its integer places, and the same with x cast."""
    pairs = []
    for name, takes in FUNCTIONS.items():
        others = ["1.5" if t in ("float", "double") else f"({t})3" for t in takes]
        for k, t in enumerate(takes):
            if t not in ("float", "double"):
                close = ")" * (1 + name.count("("))
                one, other = (
                    f"{name}({', '.join([*others[:k], x, *others[k + 1 :]])}{close}" for x in ("x", f"({t})x")
                )
                pairs.append((one, other))
    return pairs


def of_warps() -> list[tuple[str, str]]:
    return [(text.format(x="x"), text.format(x=f"({t})x")) for text, t in OF_WARPS.items()]


def test_integer_functions(cache):
    wrong = wrong_of(of_functions(), "real_functions", "#include <cuda_fp16.h>\n")
    assert not wrong, f"{len(wrong)}: " + "\n".join(wrong[:20])


def test_functions_of_a_warp(cache):
    wrong = wrong_of(of_warps(), "real_warps")
    assert not wrong, f"{len(wrong)}: " + "\n".join(wrong[:20])


CLASSES = """
struct Row { int first; __device__ int operator[](int k) const { return k; } };
template <typename T> struct Table {
  T first;
  __device__ T& operator[](T k) { first = k; return first; }
  __device__ const T& operator[](T k) const { return first; }
};
struct Real { double x; __device__ operator double() const { return x; } };
struct Small { float x; __device__ operator float() const { return x; } };
struct Both {
  double x; __device__ operator int() const { return 7; } __device__ operator float() const { return 1e20f; } };
struct Fixed { short x; __device__ operator float() const { return x; } };
__device__ int operator+(int a, Fixed b) { return a + 1000 * b.x; }
__device__ int& operator+=(int& a, Fixed b) { return a += 100 * b.x; }
struct Amount { int n; __device__ operator int() const { return n; } };
struct Bits { unsigned x; __device__ operator unsigned() const { return x; } };
struct Own { int x; };
__device__ int operator<<(int a, Own b) { return 10 * a + b.x; }
__device__ int operator<<(Own a, int b) { return 100 * a.x + b; }
struct Begins { float f = 2.5f; int a = 3e9f, b = -3e9f; unsigned c = -1.5f; unsigned char d{(unsigned char)7}; };
template <typename T> struct Box { T a = 3e9f; long long b = 5; T c[2] = {1e20f, -1.f}; };
__device__ int by_default(int a = 3e9f, unsigned b = -2.0f, const short& c = 5.5f) { return a / 2 + b + c; }
template <typename T> __device__ T of_any(T a, T b = 1e20) { return b; }
__device__ int half_of(int k) { return k / 2; }
__device__ int after_a_struct(double v) { struct Local { int a; __device__ float twice() { return 2.5f; } }; Local l{1};
  return l.twice() == 2.5f ? v : l.a; }
__device__ unsigned after_a_lambda(double v) {
  auto f = [](float y) { return y * 0.5f; }; return f(3.f) == 1.5f ? v : 0; }
struct Base { int b; __device__ Base(int k) : b(k) {} };
struct Derived : Base { __device__ Derived(float x) : Base(x) {} };
struct Made { int a; __device__ Made(int k) : a(k) {} __device__ Made(double x, int) : Made(x) {} };
template <typename T> struct Three { T x, y, z; };
template <typename T> __device__ Three<T> three(float a) { return {a, a, a}; }
struct Pair { int a; unsigned b; };
__device__ Pair paired(double a) { return {a, a}; }
__device__ int2 of_vector(double a) { return {a, a}; }
__device__ int over(int a, int b) { return a / 2 + b; }
__device__ int over(long long a, const char*) { return a > 5 ? 5 : 6; }
__device__ int chosen(int a, int* p) { return a; }
__device__ int chosen(double a, float b) { return a > 0 ? 99 : 98; }
__device__ decltype(1) of_decltype(double v) { return v; }
#define TO_INT(v) int(v)
#define SET(to, v) to = v
#define DECLARE(type, name, v) type name = v
#define RETURN(v) return v
typedef int& Slot;
__device__ int by_macro(double v) { RETURN(v); }
__device__ int in_a_struct(double v) {
  struct Local { double a; __device__ int whole() { return a; } }; return Local{v}.whole(); }
"""
OF_CLASSES = {
    "Row()[x]": "(int)x",
    "(Table<long long>())[x]": "(long long)x",
    "(Table<unsigned>())[x * 1]": "(unsigned)x",
    "(int)Real{x}": "(int)(double)x",
    "[&] { int k = Real{x}; return k; }()": "(int)(double)x",
    "[&] { unsigned k = 0; k = Small{(float)x}; return k; }()": "(unsigned)(float)x",
    "half_of(Small{(float)x})": "half_of((int)(float)x)",
    "[&] { int k = 1; k += Real{x}; return k; }()": "[&] { int k = (int)(1 + (double)x); return k; }()",
    "(int)Both{x}": "7",
    "[&] { int k = Both{x}; return k; }()": "7",
    "(int)Fixed{3}": "3",
    "[&] { int k = 1; k += Fixed{3}; return k; }()": "301",
    "(1 + Fixed{2})": "2001",
    "(1u << Amount{(int)x})": "(1u << (int)x)",
    "(0x80000000u >> Amount{40})": "0u",
    "(Bits{1} << Amount{33})": "0u",
    "(Bits{1} << 35)": "0u",
    "[&] { unsigned k = 1; k <<= Amount{32}; return k; }()": "0u",
    "(3 << Own{4})": "34",
    "(Own{3} << 40)": "340",
    "Begins().a": "2147483647",
    "Begins().b": "(-2147483647 - 1)",
    "(Begins().c + Begins().d)": "7",
    "Box<int>().a": "2147483647",
    "(Box<unsigned>().c[0] + Box<unsigned>().c[1])": "0xffffffffu",
    "by_default()": "(1073741823 + 5)",
    "by_default(2)": "6",
    "of_any(1)": "2147483647",
    "of_any(1ull)": "0xffffffffffffffffull",
    "after_a_struct(x)": "(int)(double)x",
    "after_a_lambda(x)": "(unsigned)(double)x",
    "Derived((float)x).b": "(int)(float)x",
    "Made(x, 1).a": "(int)(double)x",
    "[&] { int k = x; return (double)(float)k; }()": "[&] { volatile int k = x; return (double)(float)k; }()",
    "((double)(int)x / 2.5f)": "[&] { volatile int k = x; return (double)k / 2.5f; }()",
    "three<int>((float)x).y": "(int)(float)x",
    "paired(x).b": "(unsigned)(double)x",
    "of_vector(x).y": "(int)(double)x",
    "over(x, 3)": "over((int)x, 3)",
    'over(x, "s")': 'over((long long)x, "s")',
    "[&] { int q = 0; return chosen(x, &q); }()": "(int)x",
    "chosen(3e9f, 1.f)": "99",
    "of_decltype(x)": "(int)(double)x",
    "[&] { int k = 0; SET(k, x); return k + TO_INT(x) / 2; }()": "[&] { return (int)x + (int)x / 2; }()",
    "[&] { DECLARE(int, k, x); DECLARE(float, j, 2.5f); return k / j; }()": "((int)x / 2.5f)",
    "by_macro(x)": "(int)(double)x",
    "[&] { struct L { int v; L(double q) : v(q) {} } l(x); return l.v; }()": "(int)(double)x",
    "[&] { int k = 1; Slot s = k; s += 2; return k; }()": "3",
    "in_a_struct(x)": "(int)(double)x",
}  # fmt: skip


def test_classes_and_what_is_left_out(cache):
    wrong = wrong_of(list(OF_CLASSES.items()), "real_classes", CLASSES)
    assert not wrong, f"{len(wrong)}: " + "\n".join(wrong[:20])


def test_the_casts_that_the_others_are_compared_with(cache):
    """By Python's whole numbers."""
    m = load_inline("real_cast", "__global__ void cast(int n, const double* x, long long* o) {"
                    " CUDA_KERNEL_LOOP(i, n) { o[i] = (int)x[i]; } }", backends="host")  # fmt: skip
    out = torch.empty(len(HARD), dtype=torch.int64)
    m.cast_kernel(len(HARD), torch.tensor(HARD, dtype=torch.float64), out)
    assert out.tolist() == [converted(v, 32, True, 64) for v in HARD]


def test_all_functions_of_integers_are_compared():
    """Those that the host's headers declare with an integer as such, and no `Given` one, are internal."""
    from support.workshop import ROOT

    plain = set()
    for name in ("integer", "simd", "warp", "math", "rounding"):
        text = (ROOT / "include" / "host" / f"cuda_{name}.h").read_text()
        text = re.sub(r"namespace cuda_host \{.*?\n\}  // namespace cuda_host", "", text, flags=re.S)
        for head in re.finditer(r"^(?:inline|__forceinline__) [\w ]+?\b(\w+)\(([^()]*)\) \{", text, re.M):
            if re.search(r"(^|, )(?:const )?(unsigned |long |short )*(int|long|short|unsigned) \w+", head[2]):
                plain.add(head[1])
    assert plain <= {"__reduce_##name##_sync", "__dp4a", "__dp2a_lo", "__dp2a_hi"}


def test_an_object_that_is_called_changes_its_argument(cache):
    """Through `int&` and the like: it takes what there is, and no number that was converted."""
    text = """
    struct Predict { __device__ void operator()(const int p, int& c, double n) const { c -= int(p + n) / 2; } };
    __device__ void twice(float& x, const int& by) { x *= by; }
    template <typename F> __device__ void call(const F& f, int* x) { f(x[0], x[1], x[2]); }
    template <typename F> __device__ void with_float(F f, float* x, float by) { f(x[0], by); }
    __global__ void k(int* x, float* y) {
      call(Predict(), x);
      call([](int a, int& b, long c) { b += a * c; }, x);
      with_float(twice, y, 3.7f);
      with_float([](float& z, int by) { z += by; }, y, 1e10f);
      int four[4] = {1, 2, 3, 4};
      auto all = [](int (&a)[4], const int& n) { for (int& v : a) v *= n; };
      all(four, 2.9f);
      x[3] = four[3];
    }"""
    x, y = torch.tensor([3, 10, 5, 0], dtype=torch.int32), torch.tensor([2.0])
    load_inline("called", text, backends="host").k(x, y, grid_x=1, block_x=1)
    assert x.tolist() == [3, 10 - 4 + 15, 5, 8] and y.item() == 2.0**31

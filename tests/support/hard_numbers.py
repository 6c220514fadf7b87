"""What PTX's cvt.rzi, shl and shr give, in Python's whole numbers; ways to write conversions and shifts in CUDA."""

import math
import struct

# name: bits, with a sign?
INTEGERS = {
    "signed char": (8, True),
    "unsigned char": (8, False),
    "short": (16, True),
    "unsigned short": (16, False),
    "int": (32, True),
    "unsigned int": (32, False),
    "long long": (64, True),
    "unsigned long long": (64, False),
}
REALS = {"float": 32, "double": 64}
HARD = [
    *(
        0.0,
        -0.0,
        0.5,
        -0.5,
        0.999,
        -0.999,
        1.0,
        -1.0,
        1.5,
        -1.5,
        5e-39,
        127.0,
        128.5,
        -128.0,
        -129.0,
        255.0,
        256.0,
    ),
    *(
        -5.0,
        32767.0,
        32768.0,
        -32769.0,
        65535.0,
        65536.0,
        2147483520.0,
        2147483647.0,
        2147483648.0,
        -2147483648.0,
    ),
    *(
        -2147483904.0,
        4294967040.0,
        4294967296.0,
        3e9,
        -3e9,
        9.2e18,
        2.0**63,
        -(2.0**63),
        1.8e19,
        2.0**64,
        1e20,
        -1e20,
    ),
    *(3.4e38, math.inf, -math.inf, math.nan),
]
# Each sets r, of type T, to v, of type R.
CONVERSIONS = {
    "a cast": "r = (T)v;",
    "a cast of a sum": "r = (T)(v + 0);",
    "a cast of a minus": "r = (T)- (-v);",
    "static_cast": "r = static_cast<T>(v);",
    "a function's form": "r = Alias_K(v);",
    "braces": "r = Alias_K{v};",
    "a typedef": "r = (Alias_K)v;",
    "a typedef of a minus": "r = (Alias_K)- (-v);",
    "a cast of a cast": "r = (T)(R)(T)v;",
    "a wide cast of a cast": "r = (long long)(T)v;",
    "a real cast before": "r = (T)(R)v;",
    "an initialiser": "T k = v; r = k;",
    "the second of two": "T j = 1, k = v; r = k + 0 * j;",
    "an initialiser of a typedef": "const Alias_K k = v; r = k;",
    "parentheses": "T k(v); r = k;",
    "a list": "T k{v}; r = k;",
    "an array's list": "T k[2] = {0, v}; r = k[1];",
    "an assignment": "r = v;",
    "two assignments": "T k; r = k = v;",
    "a condition": "r = v == v || true ? v : R(0);",
    "an element": "T k[2]; k[1] = v; r = k[1];",
    "a pointer": "T* k = &r; *k = v;",
    "a reference": "T& k = r; k = v;",
    "a const reference": "const T& k = v; r = k;",
    "a field": "Cell_K k; k.a = v; r = k.a;",
    "a pointer's field": "Cell_K k; (&k)->a = v; r = k.a;",
    "a struct's list": "Cell_K k = {v}; r = k.a;",
    "a struct in place": "r = Cell_K{v}.a;",
    "a constructor": "Made_K k(v); r = k.a;",
    "a constructor in place": "r = Made_K(v).a;",
    "a member function": "Made_K k(R(0)); k.set(v); r = k.a;",
    "an argument": "r = taken_K(v);",
    "a const reference's argument": "r = seen_K(v);",
    "a result": "r = given_K(v);",
    "a template's argument": "r = through<T>(v);",
    "a template's result": "r = Converter<T>()(v);",
    "a class template's field": "Box<T> k; k.a = v; r = k.a;",
    "a class template's function": "Box<T> k; k.set(v); r = k.a;",
    "an object that is called": "Taker_K k; r = k(v);",
    "a lambda": "auto k = [](T x) { return x; }; r = k(v);",
    "a lambda's result": "auto k = [](R x) -> T { return x; }; r = k(v);",
    "a pointer to a function": "T (*k)(T) = taken_K; r = k(v);",
    "+=": "r = 0; r += v;",
    "-=": "r = 0; r -= -v;",
    "*=": "r = 1; r *= v;",
    "/=": "r = 0; r += v / 1;",
    "|=": "r = 0; r |= (T)v;",
    "^=": "r = 0; r ^= (T)v;",
    "a macro": "r = WHOLE(T, v);",
    "a macro that assigns": "ASSIGN(r, v);",
    "a loop": "for (T k = v, once = 1; once; once = 0) r = k;",
    "if": "if (T k = v) r = k; else r = 0;",
    "auto": "auto k = (T)v; r = k;",
    "decltype": "decltype(r) k = v; r = k;",
    "volatile": "volatile T k = v; r = k;",
    "a comma": "r = (T)v, (void)0;",
    "a vector": "r = make_NAME2(0, v).y;",
    "a vector's list": "NAME2 k = {v, v}; r = k.y;",
    "a vector's field": "NAME4 k; k.w = v; r = k.w;",
}
VECTORS = dict(
    zip(INTEGERS, ("char", "uchar", "short", "ushort", "int", "uint", "longlong", "ulonglong"), strict=True)
)
# Each sets r, of type T, to a << n or a >> n. The last shifts are those of a promoted number.
SHIFTS = {
    "<<": [
        *(
            "r = a << n;",
            "r = (a) << (n);",
            "r = a; r <<= n;",
            "r = LEFT(a, n);",
            "r = Shifter<T>::left(a, n);",
        ),
        *("T k[1] = {a}; k[0] <<= n; r = k[0];", "r = 0; r |= a << n;", "r = n >= 0 || true ? a << n : 0;"),
        *("r = a << n + 0;", "r = left(a, n);", "auto k = [=](int m) -> T { return a << m; }; r = k(n);"),
        *(
            "Cell_K k{a}; k.a <<= n; r = k.a;",
            "Bits_K k; k.a = a; r = k.a << n;",
            "T* k = &r; *k = a; *k <<= n;",
        ),
    ],
    ">>": [
        *(
            "r = a >> n;",
            "r = (a) >> (n);",
            "r = a; r >>= n;",
            "r = RIGHT(a, n);",
            "r = Shifter<T>::right(a, n);",
        ),
        *("T k[1] = {a}; k[0] >>= n; r = k[0];", "r = 0; r |= a >> n;", "r = n >= 0 || true ? a >> n : 0;"),
        *("r = a >> n + 0;", "r = right(a, n);", "Box<Box<T>> k; k.a.a = a; r = k.a.a >> n;"),
        *(
            "Cell_K k{a}; k.a >>= n; r = k.a;",
            "Bits_K k; k.a = a; r = k.a >> n;",
            "T* k = &r; *k = a; *k >>= n;",
        ),
    ],
}
AMOUNTS = [0, 1, 7, 8, 15, 16, 30, 31, 32, 33, 63, 64, 65, 127, 255, 256, -1, -31, -32, 2**31 - 1]
COMMON = """
#define WHOLE(type, x) ((type)(x))
#define ASSIGN(to, x) do { to = x; } while (0)
#define LEFT(x, shift) ((x) << (shift))
#define RIGHT(x, by) (x >> by)
template <typename To, typename From> __device__ To through(From x) { return x; }
template <typename T> struct Converter {
  template <typename F> __device__ T operator()(F x) const { return static_cast<T>(x); }
};
template <typename T> struct Box { T a; __device__ void set(T x) { a = x; } };
template <typename T> struct Shifter {
  __device__ static T left(T x, int n) { return x << n; }
  __device__ static T right(T x, int n) { return x >> n; }
};
template <typename T> __device__ T left(T x, int n) { x <<= n; return x; }
template <typename T> __device__ T right(T x, int n) { x >>= n; return x; }
"""
OF_TYPE = """
typedef T Alias_K;
struct Cell_K { T a; };
struct Bits_K { T a : 8 * sizeof(T); };
struct Made_K {
  __device__ Made_K(R x) : a(x) {}
  __device__ void set(T x) { a = x; }
  T a;
};
struct Taker_K { __device__ T operator()(T x) const { return x; } };
__device__ T taken_K(T x) { return x; }
__device__ T seen_K(const T& x) { return x; }
__device__ T given_K(R x) { return x; }
"""
# How a kernel runs: as a loop that may vectorise, by phases, on fibres.
WAYS = {
    "loop": "",
    "phases": "__shared__ int meet[1]; if (threadIdx.x == 0) meet[0] = 0; __syncthreads(); n += meet[0];",
    "warps": "n += __shfl_xor_sync(0xffffffff, 0, 1);",
    "fibres": "if (threadIdx.x % 32 < 64) __syncwarp(__activemask());",
}


def wrapped(x: int, bits: int, signed: bool) -> int:
    x %= 1 << bits
    return x - (1 << bits) if signed and x >> (bits - 1) else x


def converted(x: float, bits: int, signed: bool, real: int) -> int:
    """PTX's cvt.rzi of a real number with that many bits; nvcc converts to 32 bits, and stores 8 or 16."""
    wide = max(bits, 32)
    low, high = (-(1 << (wide - 1)), (1 << (wide - 1)) - 1) if signed else (0, (1 << wide) - 1)
    if math.isnan(x):
        whole = 0 if wide == 32 and real == 32 else 1 << (wide - 1)
    elif math.isinf(x):
        whole = high if x > 0 else low
    else:
        whole = min(max(math.trunc(x), low), high)
    return wrapped(whole, bits, signed)


def shifted(sign: str, x: int, amount: int, bits: int, signed: bool) -> int:
    """PTX's shl or shr of a number after its promotion to 32 bits, stored with its own."""
    wide = max(bits, 32)
    amount %= 1 << 32
    is_signed = signed or bits < 32
    if sign == "<<":
        return wrapped(x << amount if amount < wide else 0, bits, signed)
    return wrapped(x >> min(amount, wide - 1) if is_signed or amount < wide else 0, bits, signed)


def rounded(x: float, real: int) -> float:
    return struct.unpack("f", struct.pack("f", x))[0] if real == 32 and abs(x) <= 3.4e38 else x

"""Casts in device code: which are found, and what is written."""

import pytest

from tools.cuda.casts import casts
from tools.cuda.lexer import Lexed
from tools.cuda.number_types import Names, Types
from tools.cuda.source import Source


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("x = (int)a.b[2]->c(d) * 3;", "x = (int)(As<int>)a.b[2]->c(d) * 3;"),
        ("x = -(int)-y;", "x = -(int)(As<int>)-y;"),
        ("f((int)a, (unsigned)b);", "f((int)(As<int>)a, (unsigned)(As<unsigned>)b);"),
        ("x = (int)(float)y + (int)g<3>(z);", "x = (int)(As<int>)(float)y + (int)(As<int>)g<3>(z);"),
        ("x = (float)(int)y;", "x = (float)(int)(As<int>)y;"),
        ("word |= (unsigned)x << 8;", "word |= (unsigned)(As<unsigned>)x << 8;"),
        ("return (int)a < b;", "return (int)(As<int>)a < b;"),
        ("x = int(y) + sizeof(int);", "x = to<int>(y) + sizeof(int);"),
        ("x = (int)sizeof...(T);", "x = (int)(As<int>)sizeof...(T);"),
        ("x = (std::int32_t)y;", "x = (std::int32_t)(As<std :: int32_t>)y;"),
        ("{ int(*x)[8] = y; f(int(*x)); }", "{ int(*x)[8] = y; f(to<int>(*x)); }"),
        ("void f(int(&x)[8], int(*const y)[8]) {", "void f(int(&x)[8], int(*const y)[8]) {"),
        ("f = {int(*x) / 2};", "f = {to<int>(*x) / 2};"),
        ("x = (Index)-y + (Foo)-y;", "x = (Index)(As<Index>)-y + (Foo)-y;"),
        ("x = (Foo)y + (Cell)y;", "x = (Foo)(As<Foo>)y + (Cell)y;"),
        ("x = (y) - z + (y)(z);", "x = (y) - z + (y)(z);"),
        (
            "p = (int*)q; u = (void)v; c = (char*)q;",
            "p = (int*)(GpuPointer<int *>)q; u = (void)v; c = (char*)q;",
        ),
        ("p = reinterpret_cast<float4*>(q) + (int**)r;", "p = pointer<float4*>(q) + (int**)r;"),
        ("x = static_cast<int>(y) + static_cast<int*>(z)[0];", "x = to<int>(y) + static_cast<int*>(z)[0];"),
        ("x = static_cast<Foo&&>(y) z (u)(w);", "x = static_cast<Foo&&>(y) z (u)(w);"),
        ("x = y > (int)z;", "x = y > (int)(As<int>)z;"),
        ("x = (int)3 + int(4) + (double)y;", "x = (int)3 + int(4) + (double)y;"),
        ("for (int i = 0; i < n; ++i) g(int64_t(i));", "for (int i = 0; i < n; ++i) g(to<int64_t>(i));"),
        (
            "std::function<int(float)> f; int (*g)(int) = h;",
            "std::function<int(float)> f; int (*g)(int) = h;",
        ),
    ],
)
def test_what_is_found(text, wanted):
    lexed = Lexed(text)
    names = Names(Types([Source("using Index = int; struct Cell { int a; };", "x.cu")]))
    found = list(casts(lexed.tokens, lexed.partner, 0, len(lexed.tokens), names))
    for start, end, new in sorted(found, key=lambda edit: edit[:2], reverse=True):
        text = text[:start] + new + text[end:]
    assert (
        text.replace("::cuda_host::GpuCast", "As")
        .replace("::cuda_host::gpu_", "")
        .replace("::cuda_host::", "")
        == wanted
    )

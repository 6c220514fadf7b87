"""Headers of extensions."""

import pytest

from cuffi.old_torch.make.declarations import functions_of
from tools.refused import Refused


def functions(tmp_path, text):
    (tmp_path / "x.h").write_text(text)
    return {f.name: f for f in functions_of(str(tmp_path / "x.h"), "x.h")}


def test_what_headers_of_that_time_have(tmp_path):
    found = functions(
        tmp_path,
        "// comment\n#include <THC/THC.h>\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
        "#define N(a) \\\n  a\n/* two\nlines */\nextern int a(THCudaTensor *x, const THLongTensor *, int *memory);\n"
        "void b(void);\nfloat c(unsigned char u, size_t s, bool flag, double d, long l);\n"
        "int *d(const char *text, float **deep);\nstatic inline int hidden(int x) { return x; }\n"
        "void launcher(float *x, cudaStream_t stream);\nint a(THCudaTensor *x, const THLongTensor *, int *memory);\n"
        "#ifdef __cplusplus\n}\n#endif\n",
    )  # fmt: skip
    kinds = {name: [p.kind for p in f.parameters] for name, f in found.items()}
    assert kinds["a"] == ["kTensor", "kTensor", "kMemory"] and kinds["b"] == []
    assert kinds["c"] == ["kInteger", "kInteger", "kInteger", "kReal", "kInteger"]
    assert kinds["d"] == ["kText", "kMemory"] and "hidden" not in found
    x, order, _ = found["a"].parameters
    assert (x.name, x.code, x.bits, x.on_gpu) == ("x", 2, 32, True)
    assert (order.name, order.code, order.bits, order.on_gpu) == ("", 0, 64, False)
    u, s, flag, _, long = found["c"].parameters
    assert (u.least, u.most) == (0, 255) and (s.least, s.most) == (0, 2**63 - 1)
    assert (flag.least, flag.most) == (0, 1) and (long.least, long.most) == (-(2**63), 2**63 - 1)
    assert [found[name].returns.kind for name in "abcd"] == ["kInteger", "kNothing", "kReal", "kMemory"]
    assert found["b"].place == "x.h:11"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("int f(THFloatTensor &x);", r"x\.h: error: not C declarations: .*x\.h:1"),
        (
            "int f(int x);\nint g(int x, ...);",
            r"x\.h:2: error: g: Python cannot call a function with `\.\.\.`",
        ),
    ],
)
def test_what_cannot_be_read(tmp_path, text, said):
    with pytest.raises(Refused, match=said):
        functions(tmp_path, text)

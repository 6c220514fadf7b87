"""Host code that does not compile here is left out, where kernels do not need it."""

import pytest

from tools.new_layer.host_trim import Stays, trim

KERNEL = (
    "__device__ float twice(float x) { return 2 * x; }\n__global__ void k(float* x) { *x = twice(*x); }\n"
)
MADE = '\n// Made by load_inline: a launcher for each kernel.\n\nextern "C" int k_k(float* x) { return blocks(0); }\n'


def trimmed(folder, text, *errors, **others):
    for name, content in {"k.cu": text, **others}.items():
        (folder / name.replace("_h", ".h")).write_text(content)
    said = trim(str(folder), "\n".join(error.format(folder=folder) for error in errors))
    return said, (folder / "k.cu").read_text()


def at(text, word):
    """The number of the line that has the word."""
    return text[: text.index(word)].count("\n") + 1


def error(text, word, said="error: 'cublasHandle_t' was not declared"):
    return f"{{folder}}/k.cu:{at(text, word)}:5: {said}"


def test_a_host_function_its_callers_and_declarations(tmp_path):
    text = (
        "void run(float*);\n"
        + KERNEL
        + "static int helper(int n) {\n  return bad(n);\n}\n"
        + "void run(float* x) {\n  helper(3);\n}\nint main() { run(nullptr); }\nint blocks(int n) { return 1; }\n"
        + MADE
    )
    said, left = trimmed(tmp_path, text, error(text, "bad(n)"))
    assert {what.split(" ")[0] for what in said} == {"helper", "run", "main"}
    assert KERNEL in left and "int blocks" in left and MADE in left
    assert "helper" not in left and "run(" not in left and "main" not in left
    assert left.count("\n") == text.count("\n") and len(left) == len(text)


def test_what_the_linker_and_g_plus_plus_say(tmp_path):
    text = (
        "int g() { return other(); }\nvoid h() { v.w(); }\nvoid m() {\n CHECK(z); }\n#define CHECK(x) bad(x)\n"
        + KERNEL
    )
    said, left = trimmed(
        tmp_path,
        text + MADE,
        "{folder}/k.cu:1: warning: undefined reference to `other()'",
        "{folder}/k.cu:2:12:   required from here",
        "/usr/include/c++/12/vector:3:2: error: no match",
        "{folder}/k.cu:5:18: error: 'bad' was not declared in this scope",
        "{folder}/k.cu:4:2: note: in expansion of macro 'CHECK'",
    )
    assert {what.split(" ")[0] for what in said} == {"g", "h", "m"} and KERNEL in left


def test_what_the_linker_says_of_a_template_of_c_plus_plus(tmp_path):
    """std::vector<Image> asks for Image's functions of another file. The code that has such vectors names them, too."""
    text = "Image g() { Image one(3); return one; }\n" + KERNEL
    inside = "/usr/include/c++/12/bits/stl_construct.h:151: warning: undefined reference to `Image::~Image()'"
    own = "{folder}/k.cu:1: warning: undefined reference to `Image::Image(int)'"
    said, left = trimmed(tmp_path, text + MADE, inside, own, inside)
    assert said == ["g (line 1)"] and KERNEL in left
    with pytest.raises(Stays):
        trimmed(tmp_path, text + MADE, inside)


@pytest.mark.parametrize(
    "text",
    [
        "__device__ float bad(float x) { return y; }\n",
        "__host__ __device__ float bad(float x) { return y; }\n",
        "__global__ void bad(float* x) { y; }\n",
        "#define INLINE __device__ inline\nINLINE float bad(float x) { return y; }\n",
        "constexpr int bad() { return y; }\n",
        "template <> struct Traits<float> { bad };\n",
        "template <typename T> struct Traits<T*> { bad };\n",
        "template <> int f<float>() { return bad; }\n",
        "struct V { bad y; };\nV operator+(V a, V b) { return bad; }\n",
        "int f() {\n#define N 3\n return bad; }\n",
        "int f() {\n#ifdef A\n return bad; }\n#else\n return 1; }\n#endif\n",
        "int bad(int x) { return y; }\n__device__ int bad(float x) { return 1; }\n",
        "struct Array { bad y; __device__ int f() { return 1; } };\n",
    ],
)
def test_code_that_a_launcher_may_need_stays(tmp_path, text):
    text = KERNEL + text
    with pytest.raises(Stays):
        trimmed(tmp_path, text + MADE, error(text, "operator" if "operator" in text else "bad"))
    assert text in (tmp_path / "k.cu").read_text()


def test_an_error_in_a_launcher_stays(tmp_path):
    with pytest.raises(Stays):
        trimmed(tmp_path, KERNEL + MADE, error(KERNEL + MADE, "blocks(0)"))


@pytest.mark.parametrize(
    ("include", "rest", "goes"),
    [
        ("#include <nvml.h>", "", True),
        ("#include <cublas_v2.h>", "", True),
        ('#include "cublas_v2.h"', "", True),
        ('#include "gpu_nms.hpp"', "", False),  # a project's own header: nobody knows what it has
        ("#include <tuned.h>", "#ifdef FAST\n#endif\n", False),  # which the header may define
        ("#include <tuned.h>", "#define FAST\n#ifdef FAST\n#endif\n", True),
        ("#include <nvml.h>", "#ifdef FAST\n#endif\n", True),  # not by a library that is known
        ("#include <nvml.h>", "#ifdef NVML_API_VERSION\n#endif\n", False),
        ("#include <opencv2/core.hpp>", "#if CV_VERSION_MAJOR > 3\n#endif\n", False),
        ("#include <cublas_v2.h>", "#ifdef ENABLE_FP16\n#endif\n", True),
        ("#include <cublas_v2.h>", "#if CUBLAS_VERSION > 9\n#endif\n", False),
        (
            "#include <cublas_v2.h>",
            "#ifdef CUDNN\n#endif\n#ifdef OPENCV\n#endif\n",
            True,
        ),  # the project's own switches
        ("#include <fftw3.h>", "#ifdef USE_DOUBLE\n#endif\n", True),
        ("#include <fftw3.h>", "#ifdef FFTW_MPI\n#endif\n", False),
        ("#include <own/config.h>", "#ifdef USE_DOUBLE\n#endif\n", False),
        ('#include "helper_cuda.h"', "#ifdef USE_DOUBLE\n#endif\n", True),
        ('#include "config.h"', "", False),
        ("#include <nvml.h>", "#if defined(__CUDACC__) && CUDART_VERSION > 9000\n#endif\n", True),
    ],
)
def test_a_header_that_is_not_here(tmp_path, include, rest, goes):
    text = f"{include}\n{rest}{KERNEL}{MADE}"
    said = (
        "fatal error: nvml.h: No such file or directory"
        if "cublas" not in include
        else "error: the host has no <x>"
    )
    if goes:
        lines, left = trimmed(tmp_path, text, f"{{folder}}/k.cu:1:10: {said}")
        assert lines == [f"{include} (line 1)"] and include not in left and KERNEL in left
        assert ("caffe_library_types.h" in left) == ("cublas" in include)  # its types stay
    else:
        with pytest.raises(Stays):
            trimmed(tmp_path, text, f"{{folder}}/k.cu:1:10: {said}")


def test_what_the_linker_says_of_an_object_of_nvcc(tmp_path):
    """Without a line: the name tells which host functions call what is missing."""
    text = "namespace one { int other(float); }\nint g() { return one::other(1); }\n" + KERNEL
    line = "tmpxft_1-6_k.cudafe1.cpp:(.text+0x251): warning: undefined reference to `one::{}(float)'"
    said, left = trimmed(tmp_path, text + MADE, line.format("other"))
    assert {what.split(" ")[0] for what in said} == {"g", "other"} and KERNEL in left
    said, left = trimmed(
        tmp_path, "int h() { return one::cublasCreate(1); }\n" + KERNEL + MADE, line.format("cublasCreate_v2")
    )
    assert [what.split(" ")[0] for what in said] == ["h"] and KERNEL in left  # a macro of the header names it
    with pytest.raises(Stays):
        trimmed(tmp_path, text + MADE, line.format("unknown"))
    with pytest.raises(Stays):  # device code has it
        trimmed(tmp_path, text + MADE, line.format("twice"))


def test_what_a_new_linker_says_of_another_files_kernel(tmp_path):
    """It has the line and the place in the object. The kernel's declaration is device code, and stays."""
    text = "__global__ void other(int* n);\nvoid launch(int* n) {\n  other<<<1, 1>>>(n);\n}\n" + KERNEL + MADE
    line = "{folder}/k.cu:3:(.text+0x1b0e): warning: undefined reference to `other(int*)'"
    said, left = trimmed(tmp_path, text, line)
    assert [what.split(" ")[0] for what in said] == ["launch"] and KERNEL in left and "other(int* n);" in left


def test_a_folder_by_another_name(tmp_path):
    """CUFFI_CACHE may have `..` in it or be a link; a compiler's errors have the one or the other name."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    text = "int g() { return bad(); }\n" + KERNEL + MADE
    line = f"{tmp_path}/real/k.cu:1:18: error: 'bad' was not declared in this scope"
    for name in ("link", "real/../link"):
        said, left = trimmed(tmp_path / name, text, line)
        assert said == ["g (line 1)"] and KERNEL in left

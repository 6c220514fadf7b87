"""The build's files for a Caffe layer's folder."""

import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT, make
from support.compiler import WORDS
from support.fork import names

from cuffi.backends import HOST
from cuffi.caffe_layers.make import prepare as caffe_build
from cuffi.caffe_layers.make.layer_folder import LayerFolder


@pytest.fixture
def built(tmp_path):
    """The headers made for a folder of the given files."""

    def run(**files):
        folder = tmp_path / "x"
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / re.sub("_(cpp|cu|hpp|cuh)$", r".\1", name)).write_text(text)
        caffe_build.make_headers(LayerFolder(str(folder)), tmp_path / "made")
        return tmp_path / "made"

    return run


@pytest.mark.parametrize("name", ["device_atomic_functions.h", "vector_types.h", "sm_20_intrinsics.h"])
@pytest.mark.parametrize("compiler", ["host", "nvcc"])
def test_includes_of_cudas_own_headers(built, tmp_path, request, name, compiler):
    """CUDA's headers include some of them, and are to find CUDA's own."""
    text = f'#include "{name}"\n#include <cuda_runtime.h>\n'
    text += "__global__ void k(unsigned* x) { atomicCAS(x, 0u, make_uint3(1, 2, 3).y); }\n"
    made = built(a_cu=text)
    command = [*WORDS, "-x", "c++", f"-I{ROOT}/include/host", "-fsyntax-only"]
    if compiler == "nvcc":
        command = [request.getfixturevalue("nvcc"), "-arch=sm_80", "-c", "-o", tmp_path / "a.o"]
    source = tmp_path / "x" / "a.cu"
    subprocess.run([*command, "-std=c++17", f"-I{made}/include", f"-I{ROOT}/include", source], check=True)


def test_includes_that_only_nvcc_sees(built):
    made = built(a_cu='#ifdef __CUDACC__\n#include "caffe/deep.cuh"\n#endif\n', deep_cuh="")
    assert names(made / "include") == {"caffe/deep.cuh"}


def test_includes_by_a_forks_paths_find_the_folders_files(built, tmp_path):
    made = built(
        a_cpp='#include "caffe/layers/a.hpp"\n#include "caffe/layer.hpp"\n',
        a_hpp="#include <caffe/b.hpp>\n",
        b_hpp="",
    )
    assert names(made / "include") == {"caffe/layers/a.hpp", "caffe/b.hpp"}
    assert "#include <a.hpp>" in (made / "include/caffe/layers/a.hpp").read_text()
    listed = (made / "forwarded").stat().st_mtime_ns
    (tmp_path / "x" / "b.hpp").unlink()
    built()
    assert names(made / "include") == {"caffe/layers/a.hpp"}
    assert (made / "forwarded").stat().st_mtime_ns > listed


def test_list_of_headers_keeps_its_date(built):
    made = built(a_cpp='#include "caffe/layers/a.hpp"\n', a_hpp="")
    listed = (made / "forwarded").stat().st_mtime_ns
    built(a_cpp='#include "caffe/layers/a.hpp"\nint changed;\n')
    assert (made / "forwarded").stat().st_mtime_ns == listed
    built(additions_hpp="")  # which is included by an option: all objects are made anew
    assert (made / "forwarded").stat().st_mtime_ns > listed


def test_toolkits_headers_find_the_folders_files(built):
    """The toolkit's vision_layers.hpp includes common_layers.hpp, which is the fork's here."""
    made = built(a_cpp='#include "caffe/vision_layers.hpp"\n', common_layers_hpp="")
    assert names(made / "include") == {"caffe/common_layers.hpp"}


def test_empty_header_for_what_the_toolkit_has_nothing_of(built):
    made = built(a_cpp='#include "caffe/util/db.hpp"\n#include <leveldb/db.h>\n#include <vector>\n')
    assert names(made / "include") == {"caffe/util/db.hpp", "leveldb/db.h"}


def test_includes_with_the_other_slash(built):
    """Visual Studio accepts them. One names the folder's own file, one the toolkit's."""
    made = built(a_cpp='#include "caffe\\layers\\a.hpp"\n#include "caffe\\blob.hpp"\n', a_hpp="")
    texts = {path.name: path.read_text() for path in (made / "include").iterdir()}
    assert "#include <a.hpp>" in texts["caffe\\layers\\a.hpp"]
    assert "#include <caffe/blob.hpp>" in texts["caffe\\blob.hpp"]


HEADER = 'template <typename Dtype> class AOneLayer { const char* type() const { return "One"; } };\n'


def test_class_that_nobody_registers(built):
    made = built(a_hpp=HEADER, a_cpp="INSTANTIATE_CLASS(AOneLayer);\n")
    text = (made / "registration.cpp").read_text()
    assert "#include <a.hpp>" in text and 'Register<AOneLayer>("One")' in text
    built(a_cpp="INSTANTIATE_CLASS(AOneLayer);\nREGISTER_LAYER_CLASS(One);\n")
    assert "AOneLayer" not in (made / "registration.cpp").read_text()


def test_class_that_nobody_registers_and_that_says_no_type(built):
    """Its fork's layer_factory.cpp makes it: Caffe's convention gives the type."""
    header = "template <typename Dtype> class AOneLayer {};\ntemplate <typename Dtype> class BLayer;\n"
    made = built(a_hpp=header, a_cpp="INSTANTIATE_CLASS(AOneLayer);\nINSTANTIATE_CLASS(BLayer);\n")
    text = (made / "registration.cpp").read_text()
    assert 'Register<AOneLayer>("AOne")' in text and "Register<BLayer>" not in text


def test_init_of_a_folder_made_by_hand(tmp_path, capsys):
    (tmp_path / "a.hpp").write_text(HEADER)
    (tmp_path / "a.cpp").write_text("INSTANTIATE_CLASS(AOneLayer);\nREGISTER_LAYER_CREATOR(Two, GetTwo);\n")
    assert caffe_build.make_init(LayerFolder(str(tmp_path))) == 0
    text = (tmp_path / "__init__.py").read_text()
    assert 'One = caffe_layer(__name__, "One")' in text and 'Two = caffe_layer(__name__, "Two")' in text
    compile(text, "__init__.py", "exec")
    assert "Two, One" in capsys.readouterr().out


def test_link_names_what_nobody_defines(tmp_path):
    texts = {
        "wrapper": 'extern "C" void *PyList_New(long); void *w() { return PyList_New(0); }',
        "layer": "namespace caffe { int copied(); int gone(int); }\n"
        "int l(int n) { return caffe::copied() + caffe::gone(n); }",
        "copied": "namespace caffe { int copied() { return 1; } }",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.cpp").write_text(text)

    def link():
        for name in texts:
            subprocess.run(
                [*WORDS, "-fPIC", "-g1", "-c", f"{name}.cpp", "-o", f"{name}.o"], cwd=tmp_path, check=True
            )
            subprocess.run(["ar", "rcs", f"{name}.a", f"{name}.o"], cwd=tmp_path, check=True)
        tool = [
            sys.executable,
            "-m",
            "tools.make.link",
            HOST.library,
            "wrapper.o",
            "layer.a",
            "copied.a",
        ]
        paths = os.environ | {"PYTHONPATH": str(ROOT)}
        command = [*tool, "--", "host native", "", "env", *WORDS, "--"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=paths)

    done = link()
    assert done.returncode == 1 and "layer.cpp" in done.stdout and "caffe::gone(int)" in done.stdout
    assert "PyList" not in done.stdout and not list(tmp_path.glob("_host*"))
    (tmp_path / "layer.cpp").write_text(texts["layer"].replace(" + caffe::gone(n)", ""))
    done = link()
    assert done.returncode == 0 and (tmp_path / HOST.library).exists(), done.stdout


@pytest.fixture
def planned(tmp_path):
    """What make would do for folders of the given sources; nothing is compiled."""

    def run(*settings, **folders):
        for name, files in folders.items():
            (tmp_path / name).mkdir(exist_ok=True)
            for file, text in files.items():
                (tmp_path / name / file).write_text(text)
        return make("-n", f"LAYERS_DIR={tmp_path}", "NVCC=", "V=1", *settings, "libraries")

    return run


REGISTERED = {"a_layer.cpp": "namespace caffe {\nREGISTER_LAYER_CLASS(A);\n}\n", "a_layer.cu": ""}
NATIVE = {"b.cu": "// INSTANTIATE_CLASS is only mentioned\n", "b.h": ""}


def test_folder_that_registers_a_layer_is_a_caffe_layer(planned, tmp_path):
    plan = planned(a=REGISTERED, b=NATIVE).stdout
    assert (
        f"cuffi.caffe_layers.make.prepare init {tmp_path}/a" in plan
        and f"cuffi.caffe_layers.make.prepare init {tmp_path}/b" not in plan
    )
    for source in ("a_layer.cpp", "a_layer.cu", "registration.cpp"):
        assert f"{tmp_path}/build/a/host/{source}.o" in plan
    assert re.search(rf"tools.make.link {tmp_path}/a/_host.abi3.so build/core/host-\w+/_host.o", plan)
    compiled = next(line for line in plan.splitlines() if f"-c {tmp_path}/a/a_layer.cpp" in line)
    ours = "-Iinclude -Icuffi/caffe_layers/include -Icuffi/caffe_layers/include/legacy"
    assert re.search(rf"-I{tmp_path}/build/a/include .*-iquote {tmp_path}/a .*{ours} .* -w ", compiled)
    # Only a .cu meets rewritten headers: a `#pragma once` of the fork's would not tell a copy from its own file.
    assert f"-iquote {tmp_path}/build" not in compiled
    kernels = next(line for line in plan.splitlines() if f"-c {tmp_path}/build/a/host/a_layer.cu" in line)
    assert f"-iquote {tmp_path}/build/a/host" in kernels.partition(f"-iquote {tmp_path}/a ")[0]
    assert f"build_ffi.py {tmp_path}/b/b.h" in plan  # a native layer, as ever


def test_no_core_without_a_caffe_layer(planned):
    assert "libcaffe.a" not in planned(b=NATIVE).stdout
    assert "libcaffe.a" not in planned("LAYERS=b", a=REGISTERED, b=NATIVE).stdout


def test_names_that_the_build_needs(planned):
    done = planned(core=REGISTERED)
    assert "core: the toolkit uses this name itself" in done.stdout
    assert planned("LAYERS=core").returncode


@pytest.mark.parametrize(
    "line",
    [
        "",
        "thrust::sort(a, b);",
        "thrust::reduce(thrust::device, a, b);",
        "using namespace thrust; device_vector<int> v;",
    ],
)
def test_thrust_is_nvccs_where_it_is_to_work_on_the_device(built, line):
    made = built(x_cu=f"#include <thrust/sort.h>\nvoid f(int* a, int* b) {{ {line} }}\n")
    text = (made / "include/thrust/sort.h").read_text()
    assert '#include "caffe_thrust/thrust.h"' in text
    assert ("#include_next <thrust/sort.h>" in text) == ("device" in line)


# ------------------------------------------------------------------------- the file that an #include means


@pytest.fixture
def of_a_fork(tmp_path) -> LayerFolder:
    for name in (
        "common.hpp",
        "util/common.hpp",
        "x_layer.hpp",
        "deep/er/only.hpp",
        "notes.txt",
        "x_layer.cu",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return LayerFolder(f"{tmp_path}/")


@pytest.mark.parametrize(
    ("include", "file"),
    [
        ("caffe/layers/x_layer.hpp", "x_layer.hpp"),
        ("x_layer.hpp", "x_layer.hpp"),
        ("caffe/util/common.hpp", "util/common.hpp"),  # the longest end wins
        ("caffe/common.hpp", "common.hpp"),
        ("er/only.hpp", "deep/er/only.hpp"),
        ("only.hpp", None),
        ("notes.txt", None),  # no source and no header
        ("caffe/layers/other_layer.hpp", None),
    ],
)
def test_the_file_that_is_meant(of_a_fork, include, file):
    assert of_a_fork.find(include) == file
    assert of_a_fork.find(include) == file  # from memory


def test_files_of_the_folder(of_a_fork):
    assert of_a_fork.files == [
        "common.hpp",
        "deep/er/only.hpp",
        "util/common.hpp",
        "x_layer.cu",
        "x_layer.hpp",
    ]

"""create_extension: what it refuses, and what it writes."""

import pytest
import torch
from support.typed import module_of

import cuffi.ffi  # noqa: F401 (it is torch.utils.ffi)
from cuffi import CaffeBuildError
from cuffi.old_torch.ffi.build_extension import create_extension

from .conftest import run

C = "#include <TH/TH.h>\nint f(THFloatTensor *x) { THFloatTensor_fill(x, %s); return 1; }\n"


def folder_with(tmp_path, **files):
    for name, text in files.items():
        (tmp_path / name.replace("_h", ".h").replace("_c", ".c")).write_text(text)
    return f"{tmp_path}/"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"headers": "no.h"}, r"test_build_extension\.py:\d+: _ext\.x: headers: there is no file \S+/no\.h"),
        ({"sources": ["x.c", "no.c"]}, r"_ext\.x: sources: there is no file \S+/no\.c"),
        (
            {"with_cuda": True, "extra_objects": ["src/x_kernel.cu.o"]},
            r"_ext\.x: extra_objects: \S+x_kernel\.cu\.o: neither this file nor a \.cu for it exists",
        ),
    ],
)
def test_a_missing_file_is_named_with_the_scripts_line(tmp_path, options, text):
    base = folder_with(tmp_path, x_h="int f(THFloatTensor *x);", x_c=C % 1)
    given = {"headers": "x.h", "sources": ["x.c"], "relative_to": base} | options
    with pytest.raises(CaffeBuildError, match=text):
        create_extension("_ext.x", **given).build()
    assert not (tmp_path / "_ext").exists()


def test_a_name_that_th_does_not_have_and_a_header_that_is_not_c(tmp_path):
    """Both in one build: make continues after the first. Nothing is written to the folder."""
    broken = "int f(THFloatTensor *x);\nint g(THFloatTensor &x);\n"
    source = "#include <TH/TH.h>\nint f(THFloatTensor *x) {\n  THFloatTensor_svd(x);\n  return 1;\n}\n"
    (tmp_path / "build.py").write_text(
        "from torch.utils.ffi import create_extension\n"
        "create_extension('_ext.x', 'x.h', ['x.c'], relative_to=__file__).build()\n"
    )
    folder_with(tmp_path, x_h=broken, x_c=source)
    done = run(tmp_path, "build.py")
    assert done.returncode == 1
    assert f"{tmp_path}/x.c:3:3: error: implicit declaration of function" in done.stderr
    assert "THFloatTensor_svd" in done.stderr
    assert f"{tmp_path}/x.h: error: not C declarations" in done.stderr and "x.h:2" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["build.py", "x.c", "x.h"]


def test_two_packages_of_one_name_and_a_second_build(tmp_path, capsys):
    modules = []
    for i in (1, 2):
        (tmp_path / str(i)).mkdir()
        base = folder_with(tmp_path / str(i), old_h="int f(THFloatTensor *x);", old_c=C % i)
        create_extension("_ext.old", "old.h", ["old.c"], relative_to=base).build()
        create_extension("_ext.old", "old.h", ["old.c"], relative_to=base).build()  # from the cache
        package = tmp_path / str(i) / "_ext" / "old"
        modules.append(module_of(package / "__init__.py", f"one_of_two_{i}"))
    assert capsys.readouterr().out.count("_ext.old: built for host") == 4
    for i, module in enumerate(modules, 1):
        x = torch.zeros(2)
        module.f(x)
        assert x.tolist() == [i, i]


DESCRIBED = """
#include <TH/TH.h>
int f(THFloatTensor *x) {
  THDescBuff s = THFloatTensor_sizeDesc(x);
  THError("expected 3 dimensions, got a tensor of %s", s.str);
  return 1;
}
"""


@pytest.mark.parametrize(
    ("shape", "said"),
    [((), "[1]"), ((5,), "[5]"), ((5, 4), "[5 x 4]"), ((1,) * 40, "[1" + " x 1" * 14 + " ...]")],
)
def test_a_tensor_s_sizes_as_text(tmp_path, shape, said):
    base = folder_with(tmp_path, x_h="int f(THFloatTensor *x);", x_c=DESCRIBED)
    create_extension("_sizes.x", "x.h", ["x.c"], relative_to=base).build()
    module = module_of(tmp_path / "_sizes" / "x" / "__init__.py", "_sizes.x")
    with pytest.raises(RuntimeError) as raised:
        module.f(torch.ones(shape) if shape else torch.ones(1)[0])
    assert f"got a tensor of {said}" in str(raised.value)
    assert len(said) < 64


ATEN = """
#include <THC/THC.h>
#include <ATen/ATen.h>
THCState *state = at::globalContext().thc_state;
extern "C" int f(THCudaTensor *x) { return THCudaTensor_getDevice(state, x) + THCudaTensor_nElement(state, x); }
"""


def test_a_state_from_aten_and_the_device_of_the_processor(tmp_path):
    """PyTorch 0.4's. The libraries are torch's own; the processor stands in for GPU 0."""
    (tmp_path / "x.cpp").write_text(ATEN)
    folder_with(tmp_path, x_h="int f(THCudaTensor *x);")
    (tmp_path / "build.py").write_text(
        "from torch.utils.ffi import create_extension\n"
        "create_extension('_aten.x', ['x.h'], ['x.cpp'], relative_to=__file__, with_cuda=True,\n"
        "                 libraries=['ATen', '_C', 'cudart', 'caffe2']).build()\n"
    )
    (tmp_path / "use.py").write_text("import torch\nfrom _aten import x\nprint(x.f(torch.ones(5).cuda()))\n")
    built = run(tmp_path, "build.py")
    assert built.returncode == 0, built.stdout + built.stderr
    assert run(tmp_path, "use.py").stdout.split()[-1] == "5"

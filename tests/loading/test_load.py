"""load: a layer's folder from anywhere, built as by make, with nothing written to it."""

import importlib
import shutil

import pytest
import torch
from support.load import FILL, ROOT, filled, folder
from support.typed import not_none

import cuffi
from cuffi import CaffeBuildError, CaffeTypeError, CaffeValueError, load

pytestmark = pytest.mark.usefixtures("cache")


def contents(path):
    return {f.relative_to(path): f.read_bytes() for f in path.rglob("*") if "__pycache__" not in f.parts}


def test_a_bundled_layers_folder_elsewhere(tmp_path):
    path = tmp_path / "round"
    shutil.copytree(ROOT / "layers" / "round", path, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    before = contents(path)
    module = load(path)
    x = torch.rand(100, requires_grad=True)
    y = module.round_ste(x)
    assert torch.equal(y, (x >= 0.5).float())
    y.sum().backward()
    assert torch.equal(not_none(x.grad), torch.ones(100))
    assert contents(path) == before
    # The toolkit's own parts, not copies: an error is caught by the class that everybody knows.
    with pytest.raises(cuffi.CaffeTypeError):
        module.round_ste(torch.zeros(2, dtype=torch.int64))
    assert load(str(path)) is module


def test_its_cases_are_those_of_the_suite(tmp_path):
    path = tmp_path / "round"
    shutil.copytree(ROOT / "layers" / "round", path, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    module = load(path)
    cases = importlib.import_module(f"{module.__name__}.cases").CASES
    from cuffi.runtime.cases import Case

    assert cases and all(isinstance(case, Case) for case in cases)
    assert cases[0].function is module.round_ste


def test_changed_sources_and_headers_build_again(tmp_path, own_cache, compiler):
    path = folder(tmp_path)
    (path / "value.h").write_text("#define VALUE 2\n")
    (path / "fills.cu").write_text('#include "value.h"\n' + FILL.format(value="VALUE"))
    first = load(path)
    assert filled(first) == 2
    (path / "value.h").write_text("#define VALUE 3\n")
    assert filled(load(path)) == 3
    assert filled(first) == 2
    starts = len(compiler.starts)
    (path / "value.h").write_text("#define VALUE 2\n")  # as it was
    assert load(path) is first
    assert len(compiler.starts) == starts


def test_headers_beside_the_folder(tmp_path):
    path = folder(tmp_path / "deep" / "layers")
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "value.h").write_text('#include "more/value.h"\n')
    (tmp_path / "common" / "more").mkdir()
    (tmp_path / "common" / "more" / "value.h").write_text("#define VALUE 5\n")
    text = '#include "../../../common/value.h"\n' + FILL.format(value="VALUE")
    (path / "fills.cu").write_text(text)
    assert filled(load(path)) == 5
    (tmp_path / "common" / "more" / "value.h").write_text("#define VALUE 6\n")
    assert filled(load(path)) == 6


def test_without_python_of_its_own(tmp_path):
    path = folder(tmp_path, init="")
    module = load(path)
    assert importlib.import_module(f"{module.__name__}.cases").__file__ == str(path / "cases.py")
    top = torch.zeros(2)
    module.fill(top, 2)
    assert top.tolist() == [1, 1]


def test_without_cases_it_loads_and_says_so(tmp_path):
    path = folder(tmp_path)
    (path / "cases.py").unlink()
    with pytest.warns(UserWarning, match=f"{path} has no cases.py"):
        assert filled(load(path)) == 1


def test_a_folder_with_spaces_above_it(tmp_path):
    assert filled(load(folder(tmp_path / "my layers"))) == 1


# ------------------------------------------------------------------------------------ what is wrong


def test_a_compilers_error_names_the_users_file(tmp_path):
    path = folder(tmp_path, value="no_such_name")
    with pytest.raises(CaffeBuildError) as raised:
        load(path)
    assert f"{path}/fills.cu:4:" in str(raised.value)
    assert "no_such_name" in str(raised.value)


def test_a_kernel_without_an_exported_launcher(tmp_path):
    path = folder(tmp_path)
    (path / "fills.h").write_text("int other(float *top, int64_t count, void *stream);\n")
    with pytest.raises(CaffeBuildError, match='defined nowhere as `extern "C"`: other'):
        load(path)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("missing", "got .*/missing: there is none in .*`cuffi new NAME` begins one"),
        ("file", "got .*/file: it is a file"),
        ("empty", "it holds neither .cu nor .cpp"),
        ("my-layer", "expected a Python name such as my_layer, got 'my-layer'"),
    ],
)
def test_folders_that_are_none(tmp_path, what, said):
    (tmp_path / "file").write_text("")
    for name in ("empty", "my-layer"):
        (tmp_path / name).mkdir()
    with pytest.raises(CaffeValueError, match=said):
        load(tmp_path / what)


def test_what_is_no_path():
    with pytest.raises(CaffeTypeError, match="load: folder: expected a path, got 3"):
        load(3)  # ty: ignore[invalid-argument-type]

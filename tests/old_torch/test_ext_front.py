"""`python -m cuffi.ext`: an unedited setup.py and scripts, in processes of their own."""

import os
import re
import shutil

import pytest
import torch
from old_torch.conftest import SOURCES, run

from cuffi.old_torch import ext_front

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture(scope="module")
def built(tmp_path_factory, session_cache):
    """The folder of the cells, built in place by its setup.py."""
    folder = tmp_path_factory.mktemp("cells")
    shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUFFI_CACHE", str(session_cache))
        if not torch.cuda.is_available():
            patch.setenv("NVCC", "")  # nothing could run what it makes
        done = run(folder, "setup.py", "build_ext", "--inplace")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cell_cuda: built for host" in done.stdout
    return folder


@pytest.mark.parametrize("name", ["cell_cpp", "cell_cuda"])
def test_a_cell_of_2018_and_its_gradients(built, name):
    """The C++ is ATen's of 2018: AT_CHECK, x.type().is_cuda(), .data<T>(), a dispatch on a type."""
    done = run(built, "cell.py", name)
    assert done.stdout == "gradcheck: OK\n", done.stderr


def test_a_library_runs_without_the_front(built):
    script = built / "plain.py"
    script.write_text(
        "import torch, cell_cpp\nprint(len(cell_cpp.forward(*map(torch.ones, \
[(3, 5), (12, 9), (1, 12), (3, 4), (3, 4)]))))\n"
    )
    done = run(built, "plain.py")
    assert done.stdout == "7\n", done.stderr


def test_an_imported_module_says_where_its_library_is(built):
    """Beside it is the library for GPUs. Python sets __file__ after the import."""
    script = (
        "import torch; from cuffi.old_torch import aten_library as a; a.join = lambda m, file: print(file)"
    )
    (built / "place.py").write_text(f"{script}\nimport cell_cpp; print(cell_cpp.__file__)\n")
    said, wanted = run(built, "place.py").stdout.split()
    assert os.path.samefile(said, wanted)


def test_what_does_not_compile_names_the_place(tmp_path):
    (tmp_path / "wrong.cpp").write_text("#include <torch/extension.h>\n\nint f() { return nothing; }\n")
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\nfrom torch.utils.cpp_extension import *\n"
        "one = CppExtension('wrong', ['wrong.cpp'])\n"
        "setup(name='wrong', ext_modules=[one], cmdclass={'build_ext': BuildExtension})\n"
    )
    done = run(tmp_path, "setup.py", "build_ext", "--inplace")
    assert done.returncode == 1
    assert re.search(r"wrong.cpp:3:18: error: .nothing. was not declared", done.stderr)
    assert "Traceback" not in done.stderr


def test_develop_is_pips_since_setuptools_80(monkeypatch):
    """setuptools itself starts pip with build isolation, where there is neither torch nor this toolkit."""
    started = []
    monkeypatch.setattr(ext_front, "run_program", lambda words: started.append(words) or 0)
    monkeypatch.setattr(ext_front, "run_script", lambda words: started.append(words) or 0)
    monkeypatch.setattr(ext_front, "develop", type("develop", (), {"install_dir": None}))
    monkeypatch.setattr(os.path, "exists", lambda path: True)
    assert ext_front.main(["setup.py", "develop", "--no-deps"]) == 0
    assert started.pop() == ["pip", "install", "--no-build-isolation", "--use-pep517", "--no-deps", "-e", "."]
    assert ext_front.main(["a/setup.py", "develop"]) == 0 and started.pop()[-2:] == ["-e", "a"]
    ext_front.main(["setup.py", "install"]), ext_front.main(["develop.py", "develop"])
    monkeypatch.setattr(ext_front, "develop", type("develop", (), {}))  # an older one does it in its process
    ext_front.main(["setup.py", "develop"])
    assert [words[0] for words in started] == ["setup.py", "develop.py", "setup.py"]


def test_a_module_runs_as_by_python_m(tmp_path):
    """pytest, for example, for tests that want a GPU."""
    (tmp_path / "test_own.py").write_text("""import torch
def test_of_a_gpu():
    event = torch.cuda.Event()
    event.record()
    assert torch.cuda.is_available() and torch.ones(1).cuda().is_cuda and event.query() is True
    torch.cuda.synchronize(device="cuda:0"), torch.cuda.get_device_name(device=0)
    assert torch.cuda.max_memory_allocated(device="cuda") >= 0
    import torch.utils.cpp_extension as c
    assert c.__name__ == "cuffi.old_torch.cpp_extension"
""")
    done = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_own.py")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_its_arguments(tmp_path):
    assert run(tmp_path, "--help").returncode == 0
    assert run(tmp_path).returncode == 2
    done = run(tmp_path, "there_is_none.py")
    assert (done.returncode, done.stderr) == (2, "cuffi ext: there_is_none.py: No such file\n")
    done = run(tmp_path, "there_is_none")
    assert done.returncode == 127 and "there_is_none: No such file" in done.stderr


def test_a_gradient_may_ask_for_a_gpu(tmp_path):
    (tmp_path / "s.py").write_text("""import torch
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x
    @staticmethod
    def backward(ctx, grad):
        return grad * torch.full((2,), 2.0, device="cuda")
x = torch.ones(2, device="cuda", requires_grad=True)
Twice.apply(x).sum().backward()
print(x.grad.tolist(), torch.autograd.grad(Twice.apply(x).sum(), x)[0].tolist())
""")
    done = run(tmp_path, "s.py")
    assert done.stdout == "[2.0, 2.0] [2.0, 2.0]\n", done.stderr


def test_a_script_may_compile(tmp_path):
    """torch's table of functions has none twice, and it keeps the state of the random numbers."""
    (tmp_path / "s.py").write_text("""import torch
f = torch.compile(lambda x: x.cuda() + 1, backend="eager")
print(f(torch.ones(2, device="cuda")).tolist())
""")
    done = run(tmp_path, "s.py")
    assert done.stdout == "[2.0, 2.0]\n", done.stderr


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("stup.py", "stup.py: No such file; did you mean setup.py?"),
        ("scale.cpp", "scale.cpp is a source: give the setup.py or the script that builds it"),
    ],
)
def test_a_word_that_is_no_script(word, said, tmp_path, monkeypatch, capsys):
    for name in ("setup.py", "scale.cpp"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert ext_front.main([word, "build_ext"]) == 2
    assert capsys.readouterr().err == f"cuffi ext: {said}\n"


def test_a_module_that_is_not_built_yet(tmp_path):
    (tmp_path / "setup.py").write_text('CUDAExtension("ops.scale_of_mine", [])\n')
    (tmp_path / "use.py").write_text("import scale_of_mine\n")
    done = run(tmp_path, "use.py")
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and "No module named 'scale_of_mine', which " in last
    assert last.endswith(f"{tmp_path}/setup.py builds: cuffi ext setup.py build_ext --inplace")
    assert ext_front._not_built("other", str(tmp_path)) == ext_front._not_built("x", "/nowhere") == ""

"""The .cu of an object of 2017, and the stand-in for nvcc."""

import json
import shlex

import pytest

from cuffi.old_torch.ffi import front, kernels


def tree(folder, *names, **texts):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("__global__ void k() {}\n")
    for name, text in texts.items():
        (folder / name.replace("_sh", ".sh")).write_text(text)


def test_the_options_of_nvcc():
    line = "-c -o src/x.cu.o x.cu -D A=1 -DB -I inc -Iother -x cu -Xcompiler -fPIC -arch=sm_30"
    expected = "src/x.cu.o", ["x.cu"], ["-DA=1", "-DB", "-Iinc", "-Iother"]
    assert kernels.parsed(shlex.split(line)) == expected


@pytest.mark.parametrize(
    ("wanted", "files", "found"),
    [
        ("src/x.cu.o", ["src/x.cu", "src/y.cu"], "src/x.cu"),
        ("src/x.cu.o", ["src/x_kernel.cu", "src/y.cu"], "src/x_kernel.cu"),
        ("build/x_kernel.so", ["src/x_kernel.cu"], "src/x_kernel.cu"),
        ("src/cuda/x.cu.o", ["src/cuda/other.cu"], "src/cuda/other.cu"),
        ("src/b/x.cu.o", ["src/a/x.cu", "src/b/x.cu"], "src/b/x.cu"),
        ("src/x.cu.o", ["src/a.cu", "src/b.cu"], None),
        ("libx.a", ["src/a.cu"], None),
    ],
)
def test_by_name(tmp_path, wanted, files, found):
    tree(tmp_path, *files)
    units = kernels.units_of(tmp_path / wanted, tmp_path)
    assert [str(u.source.relative_to(tmp_path)) for u in units] == [found] * (found is not None)


def test_the_stand_in_notes_what_create_extension_compiles(tmp_path, monkeypatch, capsys):
    tree(tmp_path, "src/a.cu", "src/b.cu")
    monkeypatch.chdir(tmp_path)
    assert front.stand_in(["-c", "-o", "a.o", "src/a.cu", "-DN=2", "-Isrc", "-arch=sm_20"]) == 0
    assert front.stand_in(["-c", "src/b.cu"]) == 0
    assert front.stand_in(["-shared", "-o", "all.so", "a.o", "b.o"]) == 0
    units = kernels.units_of(tmp_path / "all.so", tmp_path)
    assert [(u.source.name, u.flags) for u in units] == [
        ("a.cu", ["-DN=2", f"-I{tmp_path}/src"]),
        ("b.cu", []),
    ]
    assert json.loads((tmp_path / "a.o").read_text())
    assert front.stand_in(["-c", "no.cu"]) == 1 and front.stand_in(["-o", "x.so"]) == 1
    assert front.stand_in(["--version"]) == 0
    said = capsys.readouterr()
    assert "no.cu: there is no such file" in said.err and "release" in said.out

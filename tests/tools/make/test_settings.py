"""The Makefile's settings: their values, refusals, and messages."""

import os
import platform
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.compiler import CXX, of_name

from tools.make import find_nvcc, settings
from tools.make.settings import ROOT, Settings, from_environment, of_each_folder
from tools.refused import Refused

# Where clang++ alone is there, too.


def of(**given) -> Settings:
    return Settings({"NVCC": "", **given})


def test_defaults():
    made = of()
    assert (made.layers_dir, made.build, made.core, made.outside) == ("layers", "build", "build/core", False)
    assert (made.arguments, made.layers, made.verbose, made.sanitize, made.backends) == (
        {},
        [],
        False,
        "",
        ["host"],
    )
    assert made.temporary == "build/_tmp" and made.wanted_backends == ["host", "cuda"]
    assert made.hint() == "make" and made.hint("verify", LAYER="a b") == "make verify LAYER='a b'"
    assert made.suite() == "python3 test.py" and made.suite("-k x ") == "python3 test.py -k x"


def test_a_folder_elsewhere(tmp_path):
    made = of(LAYERS_DIR=f"{tmp_path}/x/..", TYPE="Shift", LAYERS="two  one", V="1", SANITIZE=" races ")
    assert (made.layers_dir, made.build, made.core) == (str(tmp_path), f"{tmp_path}/build", "build/core")
    assert made.outside and made.verbose and made.sanitize == "races" and made.layers == ["two", "one"]
    assert made.arguments == {"TYPE": "Shift"}
    assert made.hint("port", TYPE="A") == f"make port LAYERS_DIR={tmp_path} TYPE=A"
    assert made.suite() == f"LAYERS_DIR={tmp_path} python3 test.py"
    beside = of(LAYERS_DIR=str(tmp_path), BUILD=f"{tmp_path}/b", CORE=f"{tmp_path}/c")
    assert (beside.build, beside.core) == (f"{tmp_path}/b", f"{tmp_path}/c")
    assert beside.hint() == f"make LAYERS_DIR={tmp_path} BUILD={tmp_path}/b"
    assert of(BUILD="b").hint() == "make BUILD=b" and of(BUILD="build").hint() == "make"
    given = made.environment()
    assert (given["LAYERS_DIR"], given["LAYERS"], given["V"]) == (str(tmp_path), "two one", "1")
    again = Settings(given)
    assert again.environment() == given and again.core_key("host") == made.core_key("host")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"CXX": "no-such"}, "give its path: CXX=/path/to/it"),
        ({"CXX": ""}, "CXX=: there is no such program"),
        ({"CXX": "g++\n"}, "CXX=g++\\n: there is no such program"),
        ({"CXX": "g++ 'x"}, "there is no such program"),
        ({"NVCC": "no-such"}, "NVCC=no-such: there is no such program. NVCC= builds without it"),
        ({"ARCH": ""}, "ARCH=: expected a name such as native or sm_90"),
        ({"ARCH": "sm_90 $x"}, "expected a name such as native or sm_90"),
        ({"HOST_ARCH": "a b;"}, "HOST_ARCH="),
        ({"SANITIZE": "2"}, "SANITIZE=2: expected 1 or races"),
        ({"LAYERS": "one class"}, "LAYERS=class"),
        ({"BACKENDS": "host gpu"}, "BACKENDS=gpu: there are host and cuda"),
        ({"BACKENDS": "cuda"}, "BACKENDS=cuda: there is no compiler: see NVCC"),
    ],
)
def test_refused(given, said):
    with pytest.raises(Refused) as error:
        of(**given).cxx, of(**given).backends, of(**given).nvcc
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("given", "take"),
    [("gcc -O2", "g++"), ("/usr/bin/clang-17", "clang++-17"), ("gcc-12.3", "g++-12.3"), ("cc", "c++")],
)
def test_a_compiler_of_c_is_refused(monkeypatch, given, take):
    """It would compile everything, and then link without C++'s library, with hundreds of errors."""
    monkeypatch.setattr(settings.shutil, "which", lambda name: name)
    with pytest.raises(Refused) as error:
        of(CXX=given).of("CXX")
    assert str(error.value) == f"CXX={given} cannot link C++: use {take}"
    assert of(CXX=take).cxx == take


def test_what_to_type_where_make_was_called_from_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("CALLED_IN", ROOT)
    assert (of().hint(), of().suite()) == ("make", "python3 test.py")
    monkeypatch.setenv("CALLED_IN", str(tmp_path))
    made = of(LAYERS_DIR=str(tmp_path))
    assert made.hint(LAYERS="a") == f"make -C {shlex.quote(str(ROOT))} LAYERS_DIR={tmp_path} LAYERS=a"
    assert made.suite("-k a") == f"LAYERS_DIR={tmp_path} python3 {shlex.quote(ROOT + '/test.py')} -k a"
    # An installed toolkit has no suite.
    monkeypatch.setattr(settings, "ROOT", str(tmp_path / "cuffi"))
    assert settings.suite_command(str(tmp_path)) == f"make -C {tmp_path}/cuffi test LAYERS_DIR={tmp_path}"


def test_compilers(monkeypatch, tmp_path):
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\n")
    nvcc.chmod(0o755)
    homes = []
    monkeypatch.setattr(settings.find_nvcc, "find", lambda home: homes.append(home) or str(nvcc))
    made = Settings({"CUDA_HOME": "/home", "CXX": f"{CXX}  -O1 'a b'", "ARCH": " sm_90  sm_80 "})
    assert (made.nvcc, made.nvcc, homes) == (str(nvcc), str(nvcc), ["/home"])
    assert made.backends == ["host", "cuda"] and made.missing == []
    assert made.cxx == f"{CXX} -O1 'a b'" and made.arch == "sm_90 sm_80" and made.of("ARCH") == made.arch
    monkeypatch.setattr(settings.find_nvcc, "find", lambda home: "")
    nothing = of(NVCC="search")
    assert nothing.backends == ["host"] and [b.name for b in nothing.missing] == ["cuda"]
    assert of(NVCC="search", BACKENDS="host").missing == of(NVCC="").missing == []


@pytest.mark.parametrize(
    ("arch", "says", "refused"),
    [
        ("native", "nvcc fatal: Cannot find valid GPU for '-arch=native'", True),
        ("all-major native", "nvcc warning : Cannot find valid GPU, default arch is used", True),
        ("native", "", False),
        ("all", "Cannot find valid GPU", False),
    ],
)
def test_native_needs_a_gpu(monkeypatch, arch, says, refused):
    asked = []
    run = lambda command, **_: asked.append(command) or SimpleNamespace(stderr=says, returncode=0)  # noqa: E731
    monkeypatch.setattr(settings.subprocess, "run", run)
    made = of(NVCC=sys.executable, ARCH=arch)
    if refused:
        with pytest.raises(Refused, match=r"^ARCH=native: nvcc finds no GPU here"):
            made.check_gpu()
    else:
        made.check_gpu()
    assert [command[:2] for command in asked] == [[sys.executable, "-arch=native"]] * ("native" in arch)
    of(ARCH=arch).check_gpu()  # no nvcc: nothing is asked
    assert len(asked) == ("native" in arch)


def test_each_key_has_its_own_objects():
    """Only settings that go into the toolkit's own objects change the key."""
    key = of().core_key("host")
    assert len(key) == 8 and of(ARCH="sm_80", V="1", BUILD="b").core_key("host") == key
    assert of().core_of("host") == f"build/core/host-{key}"
    others = [of(CXX=f"{CXX} -O1"), of(HOST_ARCH="x86-64"), of(SANITIZE="1"), of(SANITIZE="races")]
    assert len({key, *(other.core_key("host") for other in others)}) == 5
    assert of().core_key("cuda") != of(ARCH="sm_80").core_key("cuda")


@pytest.mark.parametrize(("sanitize", "shared"), [("", True), ("races", True), ("1", False)])
def test_the_race_finder_takes_what_has_no_kernels_from_all(sanitize, shared):
    given = of(SANITIZE=sanitize)
    assert (given.core_of("host", of_kernels=False) == of().core_of("host")) == shared
    assert (given.core_of("host") == given.core_of("host", of_kernels=False)) == (sanitize != "races")
    assert given.core_of("cuda", of_kernels=False) == of().core_of("cuda")


def test_what_make_reads():
    lines = of(CXX=f"{CXX} '-Da=$x#y'").make_variables()
    assert f"CXX := {CXX} '-Da=$$x\\#y'" in lines and f"PYTHON := {shlex.quote(sys.executable)}" in lines
    assert "BUILD := build" in lines and "V := " in lines


@pytest.mark.parametrize(("knows", "option"), [("exit 0", "-fno-gnu-unique"), ("exit 1", "")])
def test_an_option_that_clang_14_does_not_know(tmp_path, knows, option):
    compiler = tmp_path / "clang++"
    compiler.write_text(f'#!/bin/sh\ncase "$*" in *-fno-gnu-unique*) {knows};; esac\n')
    compiler.chmod(0o755)
    assert f"UNSHARED := {option}" in of(CXX=str(compiler)).make_variables()


def test_a_toolkit_that_is_anothers(monkeypatch, tmp_path):
    monkeypatch.setattr(settings.os, "access", lambda path, how: False)
    monkeypatch.setattr(settings.shutil, "which", lambda program: program)
    assert of(LAYERS_DIR=str(tmp_path)).core == f"{tmp_path}/build/core"


def test_of_each_folder(monkeypatch, tmp_path):
    for name in ("LAYERS_DIR", "BUILD", "LAYER", "V"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NVCC", "")
    monkeypatch.setenv("V", "1")
    made, others = of_each_folder([f"LAYERS_DIR={tmp_path}:layers:", "libraries", "V=", "X=1", "LAYER=one"])
    assert [one.layers_dir for one in made] == [str(tmp_path), "layers"] and others == ["libraries", "X=1"]
    assert not made[0].verbose and made[0].arguments == {"LAYER": "one"}
    first, others = from_environment(["a"])
    assert first.layers_dir == "layers" and first.verbose and others == ["a"]
    with pytest.raises(Refused, match=r"BUILD: several folders"):
        of_each_folder([f"LAYERS_DIR={tmp_path}:layers", "BUILD=b"])
    assert len(of_each_folder([f"LAYERS_DIR={tmp_path}", f"BUILD={tmp_path}/b"])[0]) == 1


def test_paths(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert settings.tidy("~/x", "BUILD") == f"{tmp_path}/x"
    assert settings.tidy(f"{ROOT}/a/../b", "BUILD") == "b" and settings.full("a/./b") == os.path.join(
        ROOT, "a/b"
    )
    assert settings.tidy("..", "BUILD") == str(Path(ROOT).parent)


def test_a_backend_that_is_missing_is_said_and_one_that_is_not_wanted_is_not(monkeypatch):
    monkeypatch.setattr(find_nvcc, "find", lambda cuda_home: "")
    assert [backend.name for backend in Settings({"NVCC": "search"}).missing] == ["cuda"]
    assert not Settings({"NVCC": ""}).missing


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_processor_that_the_compiler_does_not_know(compiler):
    of_name(compiler)
    known = "armv8.2-a" if platform.machine() == "aarch64" else "x86-64-v3"
    for name in ("native", known):
        of(HOST_ARCH=name, NVCC="", CXX=compiler).check_processor()
    with pytest.raises(
        Refused, match=rf"^HOST_ARCH=pentium9: {re.escape(compiler)} does not know this processor"
    ):
        of(HOST_ARCH="pentium9", NVCC="", CXX=compiler).check_processor()

"""Names from users and folders are never interpreted by make or a shell."""

import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT, Workshop, make
from support import makefiles

from tools.make.folders import check_file, check_path, folder_of, why_no_layer
from tools.refused import Refused

# Each would run `touch pwned` if make or a shell read it as text, or means something to one of them.
HOSTILE = [
    "x;touch pwned;y", "x`touch pwned`", "$(touch pwned)", "$(shell touch pwned)", "${shell touch pwned}",
    "$$(touch pwned)", "x|touch pwned", "x||touch pwned", "x&touch pwned", "x&&touch pwned",
    "x\ntouch pwned\n", "x\r\ntouch pwned", "'; touch pwned; '", '"; touch pwned; "', "x'y", 'x"y', "x y",
    " x", "x ", "x\ty", "x:y", "x::y", "x: y", "x,y", "$(x,y)", "x#y", "#x", "x%y", "%", "x=y", "x:=y", "x$y",
    "$x", "$$x", "${HOME}", "x(y", "x)y", "x (1)", "(x)", "x<y", "x>pwned", "x>>pwned", "x?y", "x*y", "*",
    "[x]", "{x,y}", "~", "~root", "!x", "!!", "x\\y", "x\\\ny", "-x", "--help", "-f/dev/null", "-Wl,-x", "@x",
    "+x", "x^y", "\x1b[31mx", "x\x7f", "\xa0x", "\u2028x", "x\u202ey", "..", ".", "../x", "x/../../y", "//x",
    "x/", "", "None", "class", "caffe", "build",
]  # fmt: skip


def test_the_list_is_long_enough():
    assert len(set(HOSTILE)) == len(HOSTILE) >= 60


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_hostile_text_is_a_layers_name(text, tmp_path):
    assert why_no_layer(text)
    with pytest.raises(Refused):
        folder_of(str(tmp_path), text, "NAME")


@pytest.mark.parametrize("name", ["round", "math", "features", "x2", "ROIPool", "match", "print", "a" * 200])
def test_ordinary_names_are_taken(name, tmp_path):
    assert why_no_layer(name) is None
    assert folder_of(str(tmp_path), name, "LAYER") == str(tmp_path / name)


def test_the_packages_own_names_are_taken():
    import cuffi

    assert all(why_no_layer(name) for name in cuffi._PUBLIC)


def test_a_link_leads_nowhere_else(tmp_path):
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers" / "foo").symlink_to(tmp_path)
    with pytest.raises(Refused, match="a link that leads out of"):
        folder_of(str(tmp_path / "layers"), "foo", "NAME")


@pytest.mark.parametrize(
    "path", ["/a/b c", "/a;b", "/a$b", "/a\nb", "/a,b", "/a:b", "/a%b", "/a#b", "/-a", "/a'b", "/a(b"]
)
def test_paths_that_make_cannot_work_in(path):
    with pytest.raises(Refused, match="BUILD: make cannot work in"):
        check_path(path, "BUILD")


def test_ordinary_files_are_taken():
    assert not any(check_file(name) for name in ("x_layer.cpp", "util/x.cu", "größe.cu", "x+1.cu", "x-2.hpp"))


# ------------------------------------------------------------------------------------------ make itself


def snapshot(folder) -> set[str]:
    return {os.path.join(place, name) for place, _, names in os.walk(folder) for name in names}


def run(folder, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """make in its own folder, so that files made by a hostile text stay there."""
    command = ["make", "--no-print-directory", "-f", str(ROOT / "Makefile"), "-C", str(ROOT), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", cwd=folder, env=os.environ | environment
    )


# Each text of HOSTILE costs a make: all of them for the setting that all rules have in their paths; for many a share,
# so that each text is somebody's. What else the Makefile takes gets one that make, or a shell within any quotes or
# none, would run; all of a target at once.
THOROUGH = ("BUILD",)
OFTEN = (
    "LAYER",
    "LAYERS_DIR",
    "TYPE",
    "NAME",
    "PYTHON",
    "LAYERS",
    "CXX",
    "ARCH",
    "HOST_ARCH",
    "NVCC",
    "CORE",
    "PARAM",
)
RUN = "';touch pwned;'$(shell touch pwned)`touch pwned`|touch pwned"
TAKEN = re.findall(
    r"\w+", "".join(re.findall(r"^(?:SETTINGS|ARGUMENTS) *[:+]=((?:.*\\\n)*.*)$", makefiles.TEXT, re.M))
)
TARGETS = {
    "verify": "LAYER TYPE PARAM SHAPES",
    "new": "NAME FROM",
    "port": "CAFFE FORCE",
    "caffetest": "TEST FILTER",
    "net": "PROTOTXT WEIGHTS PHASE REPLACE IGNORE STAGES",
    "fuzz": "MINUTES SEED",
}


def target_of(setting: str) -> str:
    return next((target for target, names in TARGETS.items() if setting in names.split()), "libraries")


def test_all_that_the_makefile_takes_is_known():
    assert {*THOROUGH, *OFTEN, "CUDA_HOME", "SANITIZE", "V", "SEED", "STAGES"} <= set(TAKEN)


@pytest.fixture
def hostile_make(workshop, tmp_path):
    """Runs make -n with these settings. Nothing else may run or be written outside, and there is no traceback."""
    workshop.layer("one")
    before = {name for name in os.listdir(ROOT)}
    marks = [
        *(place / "pwned" for place in (ROOT, tmp_path, tmp_path.parent)),
        *map(tmp_path.parent.joinpath, "xy"),
    ]
    usual = {"NVCC": "", "PYTHON": sys.executable, "LAYERS_DIR": str(workshop.folder)}

    def run_make(target: str, **given: str) -> None:
        try:
            done = run(tmp_path, "-n", target, *(f"{k}={v}" for k, v in (usual | given).items()))
        except ValueError:  # a NUL is no argument at all
            return
        said = done.stdout + done.stderr
        assert "Traceback" not in said, said
        assert not [mark for mark in marks if mark.exists()], given

    yield run_make
    # What another worker's tests may make there meanwhile.
    others = {"build", ".hypothesis", ".pytest_cache"}
    assert {name for name in os.listdir(ROOT)} - before <= others


@pytest.mark.parametrize("setting", [*THOROUGH, *OFTEN])
def test_hostile_settings(hostile_make, tmp_path, setting):
    for text in HOSTILE if setting in THOROUGH else HOSTILE[OFTEN.index(setting) :: len(OFTEN)]:
        value = str(tmp_path / "b" / text) if setting in ("BUILD", "LAYERS_DIR", "CORE") else text
        hostile_make(target_of(setting), **{setting: value})


@pytest.mark.parametrize("target", ["libraries", *TARGETS])
def test_hostile_settings_of_one_target(hostile_make, target):
    """All the others at once."""
    others = [name for name in TAKEN if name not in (*THOROUGH, *OFTEN) and target_of(name) == target]
    hostile_make(target, **dict.fromkeys(others, RUN))


def test_hostile_values_in_the_environment(tmp_path):
    environment = {name: f"$(shell touch {tmp_path}/pwned)" for name in TAKEN if name != "PYTHON"}
    for target in ("help", "libraries", "verify"):
        run(tmp_path, "-n", target, **environment)
    assert not (tmp_path / "pwned").exists()


def test_hostile_names_on_disk(workshop, tmp_path):
    """A layer that has files with such names is refused, folders with such names are ignored, the others are built."""
    workshop.layer("good")
    victim = workshop.layer("victim")
    names = [name for name in HOSTILE if name not in ("", ".", "..") and "/" not in name]
    for name in names:
        (workshop.folder / f"d{name}").mkdir(exist_ok=True)
        (workshop.folder / f"d{name}" / f"{name}.cu").write_text("int x;\n")
        (victim / f"{name}.cu").write_text("int x;\n")
    for target in (["help"], ["-n", "libraries"], ["-k", "libraries"]):
        done = workshop.make(*target)
    assert done.returncode and (workshop.folder / "good" / "_host.abi3.so").exists(), done.output
    assert "make cannot work with this file name" in done.output
    assert not [path for path in snapshot(tmp_path) if os.path.basename(path) == "pwned"]
    assert not (ROOT / "pwned").exists()


def test_one_bad_file_name_fails_one_layer(workshop):
    workshop.layer("one")
    (workshop.layer("two") / "two_layer (1).cu").write_text("int x;\n")
    done = workshop.make("all", with_torch=True)
    assert done.returncode and (workshop.folder / "one" / "_host.abi3.so").exists()
    assert "two_layer (1).cu: make cannot work with this file name" in done.stdout.splitlines()[-1], (
        done.output
    )
    assert "1 of 2 layers built" in done.output


def test_a_folder_whose_name_is_none(workshop):
    workshop.layer("one")
    (workshop.folder / "my-layer").mkdir()
    (workshop.folder / "my-layer" / "x.cu").write_text("int x;\n")
    assert "my-layer: a layer is named like a Python module" in workshop.build()


def test_clean_removes_only_what_a_make_has_made(tmp_path):
    shop = Workshop(tmp_path / "layers")
    shop.layer("one")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    done = shop.make("clean", f"BUILD={tmp_path / 'mine'}")
    assert done.returncode and "make has not built in this folder" in done.output
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_settings_of_the_environment_that_mean_something_else():
    """An environment may have a NAME or a TYPE."""
    done = make("-n", "verify", NAME="host", TYPE="x86", LAYER="y")
    assert "which layer?" in done.stdout + done.stderr

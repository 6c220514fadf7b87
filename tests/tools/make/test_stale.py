"""What make builds again though nothing is newer: changed inputs with an old time.

A record decides that, before any compiler starts. So most tests here write what compilers would have written, and ask
the record. Two of them build.
"""

import os
import re
import shutil
from pathlib import Path

import pytest
from conftest import ROOT

from tools.make import requirements
from tools.make.job import Job
from tools.make.settings import Settings
from tools.make.stale import Files, Record, inputs_in

OLD = 1_000_000_000  # a second in 2001
SOURCE = '#include "beside.h"\n#include "below/deep.h"\n#include "kernel.cuh"\nint one = 1;\n'
CAFFE = '#include "own_layer.hpp"\nREGISTER_LAYER_CLASS(Own);\n'
PROTO = 'syntax = "proto2";\npackage caffe;\nmessage OwnParameter { optional float slope = 1; }\n'
FILES = {
    "one/one.cu": SOURCE,
    "one/second.cu": "int second = 1;\n",
    "one/one.h": "int one_fill(float *top, int64_t count, void *stream);\n",
    "one/one_ffi.cpp": '#include "for_wrapper.h"\n',
    "one/for_wrapper.h": "// 1\n",
    "one/beside.h": '#include "further.h"\n',
    "one/further.h": "// 1\n",
    "one/below/deep.h": "// 1\n",
    "one/kernel.cuh": "__global__ void k() {}\n",
    "one/plain_loops": "k\n",
    "one/elsewhere.txt": "// 1\n",
    "own/own_layer.cpp": CAFFE,
    "own/own_layer.cu": "// kernels\n",
    "own/own_layer.hpp": "// 1\n",
    "own/additions.hpp": "// 1\n",
    "own/own.proto": PROTO,
}


@pytest.fixture
def layers(tmp_path, monkeypatch):
    """A native layer and a Caffe layer, built by fake compilers that only write depfiles."""
    monkeypatch.chdir(ROOT)
    folder = tmp_path / "layers"
    for name, text in FILES.items():
        write(folder / name, text)
    (folder / "one" / "linked.h").symlink_to(folder / "one" / "elsewhere.txt")
    write(folder / "one" / "second.cu", '#include "linked.h"\n')
    compiler = tmp_path / "bin" / "compiler"
    write(compiler, "#!/bin/sh\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{compiler.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(requirements, "writers", lambda: [str(tmp_path / "cffi-1.dist-info" / "RECORD")])
    write(tmp_path / "cffi-1.dist-info" / "RECORD", "cffi/api.py,1\n")
    compile_all(folder)
    return folder


def write(path: Path, text: str) -> None:
    """Write a file that is older than all that make has made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (OLD, OLD))


def job_of(folder: Path, **settings: str) -> Job:
    own = {"LAYERS_DIR": str(folder), "NVCC": "", "CXX": "compiler", "CORE": str(folder.parent / "core")}
    return Job(Settings(own | settings))


def included(path: Path, seen: set) -> set:
    """What a compiler reads: the file and what it includes, from its own folder."""
    if path.exists() and path not in seen:
        seen.add(path)
        for name in re.findall(r'#include "(.+)"', path.read_text()):
            included(path.parent / name, seen)
    return seen


def compile_all(folder: Path) -> None:
    """Write all targets, and the depfiles that compilers would write."""
    job = job_of(folder)
    job.write(dry=False)
    inputs = job.rules.layer_inputs
    inputs.forget()
    for record in inputs.records.values():
        for target, needs in record.targets.items():
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            Path(target).touch()
            if f"{target}.d" in record.depfiles:
                # An object is compiled from the rewritten file, whose includes are the source's.
                name = re.sub(r"(\.cpp)?(\.o)?$", "", os.path.relpath(target, folder / "build"))
                given = [need for need in needs if need.startswith(str(folder)) and "/build/" not in need]
                read = set()
                for source in given or [folder / name.replace("/host/", "/")]:
                    included(Path(source), read)
                read = sorted(map(str, read))
                Path(f"{target}.d").write_text(f"{target}: {' '.join(read)}\n")
    inputs.remember()


def stale(folder: Path) -> set[str]:
    """The targets that the next make removes, without their paths. Asked twice: a record changes only by `forget`."""
    records = job_of(folder).rules.layer_inputs.records.values()
    return {os.path.basename(target) for record in records for target in record.stale()}


def renamed(folder: Path, old: str, new: str) -> None:
    (folder / old).rename(folder / new)


def in_place(path: Path, old: str, new: str) -> None:
    """Edit a file in place, and restore its time: `touch -r`."""
    before = path.stat()
    with open(path, "r+") as file:
        text = file.read().replace(old, new)
        file.seek(0), file.write(text), file.truncate()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def relinked(path: Path, target: Path) -> None:
    path.unlink()
    path.symlink_to(target)


ONE = {"one.cu.cpp", "one.cu.o", "_host.abi3.so"}
SECOND = {"second.cu.cpp", "second.cu.o", "_host.abi3.so"}
OBJECTS = {"one.cu.cpp", "one.cu.o", "second.cu.cpp", "second.cu.o"}
# How an input changes, and some of what must be made anew.
WAYS = {
    "another version, moved here": (lambda f: write(f / "one/one.cu", SOURCE + "// 2\n"), ONE),
    "in place, with its time": (lambda f: in_place(f / "one/one.cu", "= 1", "= 12"), ONE),
    "in place, with its size and time": (lambda f: in_place(f / "one/one.cu", "= 1", "= 2"), ONE),
    "emptied": (lambda f: write(f / "one/one.cu", ""), ONE),
    "the other source": (lambda f: write(f / "one/second.cu", "// 2\n"), SECOND),
    "a header": (lambda f: write(f / "one/beside.h", "// 2\n"), ONE),
    "a header of a header": (lambda f: write(f / "one/further.h", "// 2\n"), ONE),
    "a header below": (lambda f: write(f / "one/below/deep.h", "// 2\n"), ONE),
    "a header with a kernel": (lambda f: write(f / "one/kernel.cuh", "// 2\n"), ONE),
    "a header that is gone": (lambda f: (f / "one/further.h").unlink(), ONE),
    "a header that is renamed": (lambda f: renamed(f, "one/further.h", "one/farther.h"), ONE),
    "a header that hides the toolkit's": (lambda f: write(f / "one/caffe_half.h", ""), OBJECTS),
    "a folder that hides another header": (lambda f: write(f / "one/caffe/common.hpp", ""), OBJECTS),
    "what a link leads to": (lambda f: write(f / "one/elsewhere.txt", "// 2\n"), SECOND),
    "where a link leads": (lambda f: relinked(f / "one/linked.h", f / "one/further.h"), set()),
    "a link to another text": (lambda f: relinked(f / "one/linked.h", f / "one/beside.h"), SECOND),
    "a file in place of a link": (lambda f: (f / "one/linked.h").unlink() or write(f / "one/linked.h", ""), SECOND),
    "a source that is gone": (lambda f: (f / "one/second.cu").unlink(), {"libone.a"}),
    "a source that came": (lambda f: write(f / "one/third.cu", "int third;\n"), {"libone.a"}),
    "a source that is renamed": (lambda f: renamed(f, "one/second.cu", "one/third.cu"), {"libone.a"}),
    "the declarations": (lambda f: write(f / "one/one.h", "int one_more(int n);\n"), {"_host.o", "_host.abi3.so"}),
    "the wrapper of one's own": (lambda f: write(f / "one/one_ffi.cpp", "// 2\n"), {"_host.o"}),
    "a header of that wrapper": (lambda f: write(f / "one/for_wrapper.h", "// 2\n"), {"_host.o"}),
    "no wrapper of one's own": (lambda f: (f / "one/one_ffi.cpp").unlink(), {"_host.o"}),
    "the list of loops": (lambda f: write(f / "one/plain_loops", "other\n"), {"one.cu.cpp", "_host.abi3.so"}),
    "no list of loops": (lambda f: (f / "one/plain_loops").unlink(), OBJECTS),
    "a folder by a link": (
        lambda f: (shutil.copytree(f / "one", f.parent / "other"), write(f.parent / "other/one.cu", "// 2\n"),
                   shutil.rmtree(f / "one"), (f / "one").symlink_to(f.parent / "other")), ONE),
    "Caffe: a source": (lambda f: write(f / "own/own_layer.cpp", CAFFE + "// 2\n"), {"own_layer.cpp.o"}),
    "Caffe: a kernel": (lambda f: write(f / "own/own_layer.cu", "// 2\n"), {"own_layer.cu.cpp", "own_layer.cu.o"}),
    "Caffe: a header": (lambda f: write(f / "own/own_layer.hpp", "// 2\n"), {"own_layer.cpp.o", "forward.stamp"}),
    "Caffe: a header that came": (lambda f: write(f / "own/blob.hpp", ""), {"forward.stamp", "own_layer.cpp.o"}),
    "Caffe: no additions": (lambda f: (f / "own/additions.hpp").unlink(), {"own_layer.cpp.o"}),
    "Caffe: messages": (lambda f: in_place(f / "own/own.proto", "slope", "scale"), {"proto.stamp", "_host.abi3.so"}),
    "Caffe: messages that came": (lambda f: write(f / "own/more.proto", PROTO), {"proto.stamp"}),
    "Caffe: no messages": (lambda f: (f / "own/own.proto").unlink(), {"proto.stamp"}),
    "the compiler": (lambda f: write(f.parent / "bin/compiler", "#!/bin/sh\n# 2\n"), ONE | SECOND | {"proto.stamp"}),
    "a package that writes code": (
        lambda f: write(f.parent / "cffi-1.dist-info/RECORD", "cffi/api.py,2\n"), ONE | SECOND | {"_host.o"}),
    "an object of another make": (lambda f: write(f / "build/one/host/one.cu.o.d", "one.cu.o: x\n"), {"one.cu.o"}),
    "a library of another make": (lambda f: write(f / "one/_host.abi3.so", "another"), {"_host.abi3.so"}),
    "a record that is gone": (lambda f: (f / "build/one/host/inputs").unlink(), ONE | SECOND),
}  # fmt: skip


def test_nothing_is_stale_when_nothing_changed(layers):
    assert stale(layers) == set()


@pytest.mark.parametrize("way", WAYS)
def test_an_input_changed_and_is_older(layers, way):
    """What a file list decides (a file that came or went) is a rule of make's: the list is newer."""
    change, wanted = WAYS[way]
    lists = {path: path.read_bytes() for path in layers.glob("build/*/files")}
    change(layers)
    found = stale(layers)
    job_of(layers).write(dry=False)
    newer = {path.parent.name for path, before in lists.items() if path.read_bytes() != before}
    if newer:  # all that is made of the folder depends on the list
        rules = (layers / "build" / "layers.mk").read_text()
        depend = re.findall(rf"^(\S+):.* \S*/({'|'.join(newer)})/files\b", rules, re.M)
        found |= {os.path.basename(target) for target, _ in depend}
    assert wanted <= found, (found, newer)
    assert bool(wanted) == bool(found)


def test_the_same_content_is_not_made_again(layers):
    """Another time, another file, a clone of the whole folder: only the content counts."""
    for path in layers.rglob("*.*"):
        if "build" not in path.parts and not path.is_symlink() and path.suffix != ".so":
            text = path.read_bytes()
            path.unlink()
            path.write_bytes(text)
            os.utime(path, (OLD - 100, OLD - 100))
    assert stale(layers) == set()


FUTURE = 4_000_000_000  # in 2096


@pytest.mark.parametrize("who", ["sources", "targets", "all"])
def test_a_clock_that_jumped(layers, who):
    """Sources or targets from the future: the same content is not made again, another one is."""
    for path in layers.rglob("*.*"):
        is_target = "build" in path.parts or path.suffix == ".so"
        if not path.is_symlink() and who in ("all", "targets" if is_target else "sources"):
            os.utime(path, (FUTURE, FUTURE))
    assert stale(layers) == set()
    in_place(layers / "one" / "one.cu", "one = 1", "one = 2")
    assert stale(layers) >= ONE


def test_what_changes_while_it_is_compiled(layers):
    """A compiler may have read it before or after. So it counts as changed, once."""
    job = job_of(layers)
    inputs = job.rules.layer_inputs
    inputs.forget()
    record = inputs.records[str(layers / "build/one/host")]
    late = layers / "one" / "late.h"
    late.write_text("// younger than this make\n")
    depfile = layers / "build/one/host/one.cu.o.d"
    depfile.write_text(f"one.cu.o: {layers / 'one/one.cu'} {late}\n")
    in_place(layers / "one" / "further.h", "1", "2")
    inputs.remember()
    assert record.recorded[str(late)][0] == "?" and "one.cu.o" in stale(layers)
    again = job_of(layers).rules.layer_inputs
    again.forget()
    assert not (layers / "build/one/host/one.cu.o").exists() and stale(layers) == set()


def test_a_question_removes_nothing(workshop):
    """`make -n` and `make -q` only print or return what is to be done."""
    one = workshop.layer("one")
    workshop.build()
    write(one / "one.cu", (one / "one.cu").read_text().replace("= 1;", "= 2;"))
    assert "CXX" in workshop.build("-n", "libraries") and workshop.make("-q", "all").returncode == 1
    assert (one / "_host.abi3.so").exists() and workshop.fill("one") == 1
    workshop.build()
    assert workshop.fill("one") == 2


def test_the_kernel_that_was_moved_back(workshop):
    """`cp -p one.cu b; edit one.cu; make; mv b one.cu; make`, and a header by `cp -p`; both run, in the end."""
    one = workshop.layer("one", value="VALUE", beside_h="#define VALUE 3\n")
    (one / "one.cu").write_text('#include "beside.h"\n' + (one / "one.cu").read_text())
    shutil.copy2(one / "one.cu", one / "b")
    (one / "one.cu").write_text((one / "one.cu").read_text().replace("VALUE", "100"))
    workshop.build()
    assert workshop.fill("one") == 100
    (one / "b").rename(one / "one.cu")
    workshop.build()
    assert workshop.fill("one") == 3
    write(one.parent / "old.h", "#define VALUE 4\n")
    shutil.copy2(one.parent / "old.h", one / "beside.h")
    workshop.build()
    assert workshop.fill("one") == 4 and "LINK" not in workshop.build()


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("a.o: a.cu \\\n b.h\n\nb.h:\n", ["a.cu", "b.h"]),
        ("a.o: my\\ file.h c\\#.h d$$.h", ["my file.h", "c#.h", "d$.h"]),
        ("a.o:\n", []),
        ("", []),
    ],
)
def test_a_depfile(tmp_path, text, wanted):
    (tmp_path / "a.d").write_text(text)
    assert inputs_in(str(tmp_path / "a.d")) == wanted


def test_a_record_of_nothing(tmp_path):
    record = Record(str(tmp_path), Files(0), [], lambda path: True)
    record.forget(), record.remember()
    assert not list(tmp_path.iterdir())


def test_what_processes_read_stays_until_the_new_one_is_there(tmp_path, monkeypatch):
    """Messages and the extension that makes calls. Objects and layers' libraries go."""
    monkeypatch.chdir(tmp_path)
    made = ("_caffe.desc", "_call.abi3.so", "x.o", "_host.abi3.so")
    for name in ("source", *made):
        write(tmp_path / name, "1")
    record = Record("build", Files(0), [], lambda path: False)
    record.targets = {name: ["source"] for name in made}
    record.outputs = {*made} - {"x.o"}
    record.libraries = ["_host.abi3.so"]
    record.forget()
    old = {path.name for path in tmp_path.iterdir() if path.stat().st_mtime < OLD}
    assert old == {"_caffe.desc", "_call.abi3.so"}
    assert {path.name for path in tmp_path.iterdir()} == {"source", *old}


def test_builds_with_other_compilers_share_the_extension_that_makes_calls(tmp_path):
    """Each would make it anew for itself, while the other's processes read it. Messages need no compiler."""
    elsewhere = {"NVCC": "", "BUILD": str(tmp_path)}
    jobs = [Job(Settings(elsewhere | {"CXX": compiler})) for compiler in ("env", "sh")]
    inputs = [job.rules.core_inputs.records for job in jobs]
    shared, layer = (
        [records[place].shared for records in inputs] for place in ("build", jobs[0].settings.core)
    )
    assert {"cuffi/runtime/_call.abi3.so", "cuffi/nets/net/_caffe.desc"} <= inputs[0]["build"].targets.keys()
    assert shared[0] == shared[1] and "mk/rules.mk" in shared[0]
    assert layer[0] != layer[1]

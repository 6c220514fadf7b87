"""make: what it builds again and what not, its failures, and their messages."""

import errno
import os
import re
import resource
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import ROOT, make
from support import python_with_torch
from support.workshop import steps

from tools.make import build

# ------------------------------------------------------------------------------------- what is built


def processor_time() -> float:
    """Seconds of all commands that ended: their wall time depends on what else the machine does."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_second_make_does_nothing(workshop):
    workshop.layer("one"), workshop.layer("two")
    assert len(steps(workshop.build())) == 8
    before = processor_time()
    assert not steps(workshop.build())
    assert processor_time() - before < 1


CASES = """import torch

from .._runtime.cases import Case
from . import layer


def fill(x):
    top = torch.empty_like(x)
    layer.{name}_fill(top, top.numel())
    return top


INPUTS = {{"vector": lambda draw: (draw.normal(9),)}}
CASES = [Case(function=fill, reference=torch.ones_like, inputs=INPUTS, gradient="none")]
"""


def test_second_whole_make_says_so(workshop):
    """It says nothing of backends that NVCC= and BACKENDS= leave out."""
    one = workshop.layer("one", cases_py=CASES.format(name="one"))
    first = workshop.build("all", with_torch=True)
    assert "1 of 1 layers built for host" in first and "Left out" not in first
    before = processor_time()
    second = workshop.build("all")
    assert processor_time() - before < 1
    assert "Nothing to do: 1 layers" in second and not steps(second)
    (one / "cases.py").touch()
    third = workshop.build("all", "BACKENDS=host", with_torch=True)
    assert "1 of 1 layers built for host" in third and "Left out" not in third
    (one / "one.cu").touch()
    asked = workshop.make("-q", "all")  # a question: nothing is built, so nothing has failed
    assert asked.returncode == 1 and not asked.output, asked.output


def test_touching_one_layer_builds_that_one(workshop):
    one, _ = workshop.layer("one"), workshop.layer("two")
    workshop.build()
    (one / "one.cu").touch()
    assert steps(workshop.build()) == ["HOST one/one.cu", "CXX one/one.cu", "LINK one (host)"]
    (one / "one.h").touch()
    assert {step.split()[1].partition("/")[0] for step in steps(workshop.build())} == {"one"}


def test_changed_code_is_what_runs(workshop):
    one = workshop.layer("one", value="1")
    workshop.build()
    assert workshop.fill("one") == 1
    (one / "one.cu").write_text((one / "one.cu").read_text().replace("= 1;", "= 2;"))
    workshop.build()
    assert workshop.fill("one") == 2


OWN_WRAPPER = """
static int one_fill_ffi(uintptr_t top, int64_t count, uintptr_t stream) {{
  return caffe_guard([&] {{
    const int status = one_fill(reinterpret_cast<float*>(top), count, reinterpret_cast<void*>(stream));
    for (int64_t i = 0; i < count; ++i) reinterpret_cast<float*>(top)[i] += {more};
    return status;
  }});
}}
"""


def test_changed_wrapper_of_ones_own_is_what_runs(workshop):
    one = workshop.layer("one")
    (one / "one_ffi.cpp").write_text(OWN_WRAPPER.format(more=10))
    workshop.build()
    assert workshop.fill("one") == 11
    (one / "one_ffi.cpp").write_text(OWN_WRAPPER.format(more=20))
    assert steps(workshop.build()) == ["FFI one (host)", "LINK one (host)"]
    assert workshop.fill("one") == 21


MESSAGES = """syntax = "proto2";
import "caffe.proto";
package caffe;

message OwnParameter {{
  optional float {field} = 1;
}}

extend LayerParameter {{
  optional OwnParameter own_param = 9002;
}}
"""


def test_changed_messages_are_made_anew(workshop):
    """A layer's accessors depend on its .proto, and its objects on them; nothing else is built here."""
    own = workshop.folder / "own"
    own.mkdir(parents=True)
    (own / "own_layer.cpp").write_text("namespace caffe {\nREGISTER_LAYER_CLASS(Own);\n}\n")
    (own / "own.proto").write_text(MESSAGES.format(field="slope"))
    workshop.build("-n", "libraries")
    build = workshop.folder / "build"
    rules, accessors = build / "layers.dry.mk", build / "own/include/caffe/proto/caffe.pb.h"

    def made() -> list[str]:
        command = ["make", "-f", str(rules), str(accessors)]
        return steps(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)

    assert made() == ["PROTO own"] and made() == [] and "slope" in accessors.read_text()
    (own / "own.proto").write_text(MESSAGES.format(field="offset"))
    assert made() == ["PROTO own"] and "offset" in accessors.read_text()
    assert re.search(rf"^\S*/own_layer\.cpp\.o: .*{accessors}", rules.read_text(), re.M)
    # They stay as they are where nothing changes in them, beside a newer stamp: make -q, by which the report finds what
    # failed, takes them for made.
    time.sleep(0.05)  # a file's time has steps of some milliseconds
    (own / "own.proto").touch()
    assert made() == ["PROTO own"]
    assert subprocess.run(["make", "-q", "-f", str(rules), str(accessors)], cwd=ROOT).returncode == 0


def test_changed_flag_builds_all(workshop):
    workshop.layer("one")
    workshop.build()
    assert "CXX one/one.cu" in steps(workshop.build("HOST_ARCH=x86-64-v2", "libraries"))


def test_layers_narrows(workshop):
    workshop.layer("one"), workshop.layer("two"), workshop.layer("three")
    workshop.build("LAYERS=one three", "libraries")
    assert sorted(so.parent.name for so in workshop.folder.glob("*/*.so")) == ["one", "three"]


def test_header_that_disappears_does_not_break_the_next_build(workshop):
    """A header that changes is noticed, too (seed bug 9)."""
    one = workshop.layer("one", value="VALUE", beside_h="#define VALUE 3\n")
    source = (one / "one.cu").read_text()
    (one / "one.cu").write_text('#include "beside.h"\n' + source)
    workshop.build()
    assert workshop.fill("one") == 3
    (one / "beside.h").rename(one / "renamed.h")
    (one / "one.cu").write_text('#include "renamed.h"\n' + source)
    workshop.build()
    (one / "renamed.h").write_text("#define VALUE 4\n")
    workshop.build()
    assert workshop.fill("one") == 4
    (one / "renamed.h").unlink()
    (one / "one.cu").write_text("#define VALUE 5\n" + source)
    workshop.build()
    assert workshop.fill("one") == 5


def test_header_that_is_included_by_angles(workshop):
    """The compiler finds it behind its own headers. It takes it, and what it includes, for the system's."""
    one = workshop.layer("one", value="VALUE", beside_h='#include "caffe_vector_loop.h"\n#define VALUE 3\n')
    (one / "one.cu").write_text("#include <beside.h>\n" + (one / "one.cu").read_text())
    workshop.build()
    told = (workshop.folder / "build" / "one" / "host" / "one.cu.o.d").read_text()
    assert "include/caffe_vector_loop.h" in told
    (one / "beside.h").write_text("#define VALUE 4\n")
    assert "CXX one/one.cu" in steps(workshop.build()) and workshop.fill("one") == 4


def test_each_object_of_a_caffe_layer_follows_its_headers(shared_layers):
    """Its own, which are found behind the system's, and the toolkit's that these include.

    If one object were not rebuilt, two would disagree on a class's layout.
    """
    shared_layers.build_layers("caffe_zoo")
    for source in ("zoo_layers.cpp", "zoo_layers.cu"):
        told = (shared_layers.build / "caffe_zoo" / "host" / f"{source}.o.d").read_text()
        assert "/zoo_layers.hpp" in told and "include/caffe/layers/loss_layer.hpp" in told


def test_a_depfile_of_another_toolkit_names_files_that_are_gone(workshop):
    """A source of the toolkit moves, or a rewritten file gets another name: what was made from it is made again."""
    one = workshop.layer("one", value=3)
    workshop.build()
    depfile = workshop.folder / "build" / "one" / "host" / "one.cu.o.d"
    told = depfile.read_text()
    depfile.write_text(told.replace("one.cu.cpp", "of_then/one.cu.cpp"))
    assert depfile.read_text() != told
    source = (one / "one.cu").read_text()
    (one / "one.cu").write_text(source.replace("3", "4"))
    workshop.build()
    assert workshop.fill("one") == 4
    assert depfile.read_text() == told


def test_header_that_is_missing_is_missed(workshop):
    """Its absence is an error, although the host's copy of it is still in build/."""
    one = workshop.layer("one", value="VALUE", beside_h="#define VALUE 3\n")
    (one / "one.cu").write_text('#include "beside.h"\n' + (one / "one.cu").read_text())
    workshop.build()
    (one / "beside.h").unlink()
    done = workshop.make()
    assert done.returncode != 0 and "one/one.cu:1:" in done.output and "beside.h" in done.output, done.output


SECOND = 'extern "C" int one_second(float* top, int64_t count, void*) { return top && count ? 0 : 1; }\n'


def test_deleted_source_leaves_no_code(workshop):
    one = workshop.layer("one", second_cu=SECOND)
    declared = (one / "one.h").read_text()
    (one / "one.h").write_text(declared + "int one_second(float *top, int64_t count, void *stream);\n")
    workshop.build()
    (one / "second.cu").unlink()
    done = workshop.make()
    assert done.returncode and re.search(r"one\.h: error: .*one_second", done.output)
    (one / "one.h").write_text(declared)
    workshop.build()
    listing = subprocess.run(["nm", one / "_host.abi3.so"], capture_output=True, text=True).stdout
    assert "one_fill" in listing and "one_second" not in listing


def test_killed_build_can_be_taken_up(workshop):
    for name in ("one", "two", "three"):
        workshop.layer(name)
    command = ["make", "-C", ROOT, f"PYTHON={sys.executable}", *workshop.settings("-j2", "libraries")]
    for seconds in (0.3, 0.8):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    workshop.build("-j2", "libraries")
    assert [workshop.fill(name) for name in ("one", "three")] == [1, 1]
    assert not list(workshop.folder.glob("*/*.partial"))


def test_killed_archiver_leaves_no_empty_archive(workshop, tmp_path):
    """ar first writes an empty archive, which would be newer than all objects."""
    workshop.layer("one")
    fake = tmp_path / "bin" / "ar"
    fake.parent.mkdir()
    fake.write_text(
        f'#!/bin/sh\nprintf \'!<arch>\\n\' > "$2"; touch "$TMPDIR/left" {tmp_path}/begun; sleep 600\n'
    )
    fake.chmod(0o755)
    command = ["make", "-C", ROOT, f"PYTHON={sys.executable}", *workshop.settings("libraries")]
    path = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=path, start_new_session=True)
    for _ in range(1200):
        if (tmp_path / "begun").exists():
            break
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    left = workshop.folder / "build" / "_tmp" / "left"
    assert (tmp_path / "begun").exists() and left.exists()
    workshop.build("libraries")
    assert workshop.fill("one") == 1 and not left.exists()


def test_a_failure_on_a_full_disk_says_so(tmp_path, monkeypatch, capsys):
    """It says so whichever tool failed."""
    monkeypatch.setattr(build, "_build_locked", lambda *_: 2)
    job: Any = SimpleNamespace(
        settings=SimpleNamespace(build=str(tmp_path / "build"), core=str(tmp_path), layers_dir=str(tmp_path)),
        rules=SimpleNamespace(layer_inputs=SimpleNamespace(forget=lambda: None, remember=lambda: None), libraries={}),
        write=lambda dry: None)  # fmt: skip
    assert build.build(job) == 2 and "space" not in capsys.readouterr().out
    monkeypatch.setattr(build.shutil, "disk_usage", lambda place: SimpleNamespace(free=5000))
    assert build.build(job) == 2
    said = f"make: {tmp_path}/build: No space left on device (4 KB)\n"
    assert capsys.readouterr().out == said
    job.settings.core = str(tmp_path / "not made yet")
    monkeypatch.setattr(job, "write", failing)  # the rules themselves found no space
    monkeypatch.setattr(
        build.shutil, "disk_usage", lambda place: os.stat(place) and SimpleNamespace(free=5000)
    )
    with pytest.raises(OSError):
        build.build(job)
    assert capsys.readouterr().out == said


def failing(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_error_without_a_file_names_none(monkeypatch, capsys):
    """A write error names no file: standard output may be full."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(build, "of_each_folder", failing)
    assert build.main() == 2 and capsys.readouterr().err == "make: No space left on device\n"


def test_two_makes_at_once(workshop):
    """The second waits for the first, then finds all done."""
    names = ["one", "two"]
    for name in names:
        workshop.layer(name)
    command = ["make", "-C", ROOT, f"PYTHON={sys.executable}", *workshop.settings("-j2"), "libraries"]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], "\n".join(outputs)
    assert len(steps("".join(outputs))) == 4 * len(names) and "WAIT" in "".join(outputs)
    assert workshop.fill("two") == 1


# ------------------------------------------------------------------------------------------- results


def test_help_names_the_targets():
    output = make("help").stdout
    assert all(
        re.search(rf"^{target}\t", output, re.M)
        for target in ("all", "test", "bench", "new", "lint", "clean", "help")
    )


def test_suite_without_a_build(tmp_path):
    """`python3 test.py` before `make` prints one line that says so."""
    (tmp_path / "one").mkdir()
    environment = os.environ | {"LAYERS_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, ROOT / "test.py"], capture_output=True, text=True, env=environment)
    assert done.returncode != 0 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and "type `make` first" in done.stderr


def test_suite_names_a_layer_without_cases(workshop):
    workshop.layer("one")
    workshop.build()
    environment = os.environ | {"LAYERS_DIR": str(workshop.folder)}
    # That test's file alone: to collect all takes longer than all else here.
    which = "tests/layers/test_values.py", "-k", "test_layer_says"
    command = [sys.executable, ROOT / "test.py", "-q", *which, "-p", "no:cacheprovider"]
    done = python_with_torch.run(command, env=environment)
    assert done.returncode == 1 and "layer one has no cases.py" in done.stdout
    assert re.search(r"\b1 failed.* in [\d.]+s", done.stdout.splitlines()[-1])


# ---------------------------------------------------------------------- what a build is spared, and what not


@pytest.mark.parametrize("backend", ["cuda", "host"])
def test_a_kernel_in_a_header_is_rewritten_when_it_changes(workshop, tmp_path, backend):
    """The compiler reads a copy in BUILD. With an old copy, make would silently build the old kernel."""
    kernel = "template <typename T> __global__ void k(const int n, T* top) {{ CUDA_KERNEL_LOOP(i, n) top[i] = {}; }}\n"
    source = '#include "caffe_cuda_macro.h"\n#include "beside.cuh"\n'
    one = workshop.layer("one", cu=source, beside_cuh=kernel.format(1))
    # It says what it read, as nvcc does, and compiles nothing.
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in -MF) d=$2;; -o) o=$2;; -c) s=$2;; esac; shift; done\n"
        '[ -z "$d" ] && exit\necho "${o%.partial}: $s $(dirname "$s")/beside.cuh" >"$d"; : >"$o"\n'
    )
    nvcc.chmod(0o755)
    settings = [f"NVCC={nvcc}", "ARCH=sm_80", f"BACKENDS={backend}", f"BUILD={tmp_path / 'b'}", "libraries"]
    workshop.make(*settings)
    (one / "beside.cuh").write_text(kernel.format(2))
    word = {"cuda": "LOOPS", "host": "HOST"}[backend]
    assert f"{word} one/one.cu" in steps(workshop.make(*settings).output)
    copies = [*(tmp_path / "b").rglob("beside.cuh*")]
    assert copies and all("top[i] = 2" in copy.read_text() for copy in copies)


def test_a_library_of_another_build_is_linked_anew(workshop, tmp_path):
    """It is newer than all objects in this BUILD, but was made from others."""
    one = workshop.layer("one")
    workshop.build()
    workshop.build("HOST_ARCH=x86-64-v2", f"BUILD={tmp_path / 'other'}", "libraries")
    assert b"host x86-64-v2" in (one / "_host.abi3.so").read_bytes()
    assert steps(workshop.build()) == ["LINK one (host)"]
    assert b"host native" in (one / "_host.abi3.so").read_bytes()
    with open(one / "_host.abi3.so", "r+b") as library:
        library.truncate(5000)
    assert steps(workshop.build()) == ["LINK one (host)"] and workshop.fill("one") == 1

"""The tool that puts mistakes into the tree: where it puts them, and which test it reports."""

import re
import subprocess
import sys

import pytest
from conftest import ROOT
from support.typed import not_none

from lab.mutate import __main__ as mutate
from lab.mutate.operators import mutations, sample

PYTHON = '''def limit(x, most=3):
    """A text with 1 + 1 == 2 in it."""  # and not here: 5
    if x > most and x != 7:
        x = most
    return list(zip(x, x, strict=True))
'''
CPP = """// 1 + 1
#define HALF(x) ((x) / 2)
template <typename Dtype>
void limit(const int n, const Dtype* x, vector<Dtype>* y) {
  static const int unused = 0;
  if (n > 3) {
    y[0] = x[n - 1] + "a + b"[0];
  }
  done(y);
}
"""


def changed_lines(path: str, source: str) -> set[str]:
    return {m.shown(source) for m in mutations(path, source)}


def test_python():
    said = changed_lines("a.py", PYTHON)
    assert "if x > most and x != 7:   ->   if x >= most and x != 7:" in said
    assert "if x > most and x != 7:   ->   if x > most or x != 7:" in said
    assert "if x > most and x != 7:   ->   if not x > most and x != 7:" in said
    assert "x = most   ->   pass" in said
    assert "def limit(x, most=3):   ->   def limit(x, most=4):" in said
    assert not any("text" in line or "strict=False" in line for line in said)
    for mutation in mutations("a.py", PYTHON):
        compile(mutation.apply(PYTHON), "a.py", "exec")


def test_cpp():
    said = changed_lines("a.cu", CPP)
    assert "if (n > 3) {   ->   if (n >= 3) {" in said and "if (n > 3) {   ->   if (!n > 3) {" in said
    assert 'y[0] = x[n - 1] + "a + b"[0];   ->   y[0] = x[n + 1] + "a + b"[0];' in said
    assert "done(y);   ->   ;" in said
    assert not any(re.search(r"define|template|vector<|// 1", line.split("->")[0]) for line in said), said


def test_the_same_seed_draws_the_same():
    files = {"a.py": PYTHON, "a.cu": CPP}
    assert sample(files, 5, 1) == sample(files, 5, 1) != sample(files, 5, 2)
    lines = [(m.path, m.line(files[m.path])) for m in sample(files, 50, 1)]
    assert len(lines) == len(set(lines)) > 4


def test_every_source_is_seen_by_tests_that_are_there():
    files = mutate.sources([])
    assert len(files) > 150
    places = {place for path in files for place in mutate.seen_by(path) if "/" in place}
    assert not [place for place in places if not (ROOT / place).exists()]


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("cuffi/nets/solver/updates.py", ["tests/nets/solver/test_updates.py", "tests/nets/solver"]),
        ("cuffi/nets/stock/pooling.py", ["tests/nets"]),
        ("cuffi/backends.py", ["tests/test_backends.py"]),
        (
            "cuffi/caffe_layers/verify/probe.py",
            [
                "tests/caffe_layers/verify/test_probe.py",
                "tests/caffe_layers/verify",
                "tests/runtime",
                "tests/layers",
                "tests/caffe_layers/call",
            ],
        ),
        (
            "include/host/cub/cub.cuh",
            [
                "tests/include/test_cub.py",
                "tests/include",
                "tests/runtime",
                "tests/layers",
                "tests/caffe_layers/call",
            ],
        ),
        (
            "cuffi/old_torch/src/th_call.h",
            ["tests/old_torch"],
        ),
        ("build_ffi.py", ["tests"]),
        (
            "layers/round/round.cu",
            ["tests/layers", "tests/caffe_layers/call/test_own_layers.py", "-k", "round"],
        ),
    ],
)
def test_the_mirror_says_who_sees_a_file(path, tests):
    assert mutate.seen_by(path) == tests


@pytest.fixture
def small_tree(tmp_path, monkeypatch):
    """A tree with one source, whose tests call one of its two functions."""
    tree = tmp_path / "small"
    tree.mkdir()
    (tree / "code.py").write_text("def seen(x):\n    return x + 1\n\n\ndef unseen(x):\n    return x + 1\n")
    (tree / "test.py").write_text(
        "import runpy\nfound = runpy.run_path('code.py')\nassert found['seen'](1) == 2\n"
    )
    subprocess.run(["git", "init", "-q", tree], check=True)
    subprocess.run(["git", "-C", tree, "add", "."], check=True)
    monkeypatch.setattr(mutate, "ROOT", tree)
    monkeypatch.setattr(mutate, "TREES", ("code.py",))
    return tree


def test_killed_and_survived(small_tree, monkeypatch, capsys):
    before = (small_tree / "code.py").read_text()
    monkeypatch.setattr(sys, "argv", ["mutate", "--number", "50"])
    assert mutate.main() == 1  # half is less than 90%
    said = capsys.readouterr().out
    assert re.search(r"killed +code\.py:2: ", said) and re.search(r"SURVIVED +code\.py:6: ", said)
    assert "1 of 2 noticed (50%), 0 more do not compile; seed 1" in said
    assert (small_tree / "code.py").read_text() == before
    monkeypatch.setattr(sys, "argv", ["mutate", "--number", "50", "--wanted", "50"])
    assert mutate.main() == 0


@pytest.mark.parametrize("status, outcome", [(5, "SURVIVED"), (1, "killed"), (-11, "killed")])
def test_no_test_at_all_notices_nothing(small_tree, monkeypatch, capsys, status, outcome):
    """pytest's status 5. A test process that crashes counts as a killed mutation."""
    end = f"sys.exit({status})" if status > 0 else f"os.kill(os.getpid(), {-status})"
    (small_tree / "test.py").write_text(f"import os, sys\n{end}\n")
    monkeypatch.setattr(sys, "argv", ["mutate", "--number", "50"])
    mutate.main()
    said = capsys.readouterr().out
    assert len(re.findall(f"^{outcome} ", said, re.M)) == 2
    assert said.count("no test is named") == 2 * (outcome == "killed")


def test_all_asks_the_rest_of_the_suite(small_tree, monkeypatch, capsys):
    """The rest of the suite tests the other function."""
    with open(small_tree / "test.py", "a") as suite:
        suite.write("import sys\nassert 'tests' in sys.argv or found['unseen'](1) == 2\n")
    for options, counts in ([], "1 of 2"), (["--all"], "2 of 2"):
        monkeypatch.setattr(sys, "argv", ["mutate", "--number", "50", *options])
        assert mutate.main() == (not options)
        said = capsys.readouterr().out
        assert f"{counts} noticed" in said
        assert ("killed: by the rest  code.py:6: " in said) == bool(options)


def test_what_only_a_long_test_notices_is_said(small_tree, monkeypatch, capsys):
    with open(small_tree / "test.py", "a") as suite:
        suite.write("import sys\nassert '--all' not in sys.argv or found['unseen'](1) == 2\n")
    monkeypatch.setattr(sys, "argv", ["mutate", "--number", "50"])
    assert mutate.main() == 0
    said = capsys.readouterr().out
    assert "killed: by --all     code.py:6: " in said and "2 of 2 noticed" in said


GPU_ALONE = """int f() {
#ifdef __CUDACC__
  return 1 + 2;
#else
  return 3 + 4;
#endif
#ifndef CAFFE_HOST_BACKEND
#if FIVE
  five(5);
#endif
#else
  six(6);
#endif
#if EIGHT
  eight(8);
#else
  nine(9);
#endif
  return 7;
}
"""


def test_what_nvcc_alone_reads_is_not_drawn():
    assert {m.line(GPU_ALONE) for m in mutations("a.cu", GPU_ALONE)} == {5, 12, 15, 17, 19}


def test_a_layers_file_that_the_host_was_not_made_of_is_not_drawn(small_tree, monkeypatch):
    for name in ("both.cuh", "gpu.cuh", "kernel.cu"):
        file = small_tree / "layers" / "own" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("int f() {\n  return 1 + 2;\n}\n")
    said = small_tree / "build" / "own" / "host" / "kernel.cu.o.d"
    said.parent.mkdir(parents=True)
    said.write_text("build/own/host/kernel.cu.o: build/own/host/kernel.cu.cpp \\\n layers/own/both.cuh\n")
    subprocess.run(["git", "-C", small_tree, "add", "layers"], check=True)
    monkeypatch.setattr(mutate, "TREES", ("layers/",))
    assert sorted(mutate.sources([])) == ["layers/own/both.cuh", "layers/own/kernel.cu"]


def test_two_copies_at_once_judge_alike(small_tree, monkeypatch, capsys):
    """Each with one thread of OpenMP's, which does not spin: the suite sees nothing without."""
    with open(small_tree / "test.py", "a") as suite:
        suite.write("from os import environ as e\nassert e.get('OMP_NUM_THREADS') == '1'\n")
        suite.write("assert e.get('OMP_WAIT_POLICY') == 'passive'\n")
    for variable in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(variable, raising=False)
    for jobs, said in ("2", "1 of 2 noticed (50%)"), ("1", "2 of 2 noticed (100%)"):
        monkeypatch.setattr(sys, "argv", ["mutate", "--number", "50", "--jobs", jobs])
        mutate.main()
        assert said in capsys.readouterr().out


def test_verdicts_of_earlier_runs_count(small_tree, monkeypatch, capsys, tmp_path):
    """Mutations that an earlier run judged are not judged again."""
    monkeypatch.setattr(sys, "argv", ["mutate", "--number", "50"])
    mutate.main()
    said, log = capsys.readouterr().out, tmp_path / "log"
    first = not_none(re.search(r"^SURVIVED.*\n.*\n", said, re.M)).group()
    log.write_text(first + "killed               other.py:1: of another sample\n    a   ->   b\n")
    monkeypatch.setattr(sys, "argv", ["mutate", "--number", "50", "--judged", str(log)])
    mutate.main()
    again = capsys.readouterr().out
    assert "SURVIVED" not in again and "code.py:2: " in again and "1 of 2 noticed (50%)" in again
    log.write_text(said)
    mutate.main()
    assert capsys.readouterr().out == said[said.index("1 of 2") :]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout of git's")
def test_list_does_nothing():
    command = [sys.executable, "-m", "lab.mutate", "--list", "--number", "3", "--only", "lab/mutate"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("lab/mutate/") == 3

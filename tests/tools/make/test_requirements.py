"""The Python packages and programs that `make` needs: found, installed, or named with a command."""

import ast
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from tools.make import requirements
from tools.refused import Refused


@pytest.fixture
def lacking(monkeypatch, tmp_path):
    """A requirements file with a package that nobody has; pip's arguments are recorded."""
    (tmp_path / "some.txt").write_text(
        "# comment\n-r other.txt\npytest\nno-such-package-anywhere>=1  # why\n"
    )
    (tmp_path / "other.txt").write_text("pytest\n")
    monkeypatch.setattr(requirements, "file_of", lambda group: str(tmp_path / f"{group}.txt"))
    monkeypatch.setattr(requirements, "is_virtual", lambda: True)
    for name in ("INSTALL", "PYTHON_NAMED"):
        monkeypatch.delenv(name, raising=False)
    ran = []
    monkeypatch.setattr(requirements, "_pip", lambda *arguments: ran.append(list(arguments)) or 1)
    return ran


@pytest.fixture
def outside(lacking, monkeypatch, tmp_path):
    """The same in no virtual environment. What would be started is recorded, with the venv options."""
    started = []
    monkeypatch.setattr(requirements, "is_virtual", lambda: False)
    monkeypatch.setattr(requirements, "OWN", str(tmp_path / ".venv"))
    monkeypatch.setattr(sys, "orig_argv", ["py", "-m", "tools.make.build", "all"])

    def venv(command, **options):
        started.append(command[1:])
        (tmp_path / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
        (tmp_path / ".venv" / "bin" / "python").touch()
        return subprocess.CompletedProcess(command, 0)

    def run(program, command):
        started.append(command)
        raise SystemExit  # the process is another one now

    monkeypatch.setattr(subprocess, "run", venv)
    monkeypatch.setattr(os, "execv", run)
    return started


def need(tmp_path):
    requirements.need(["some"], str(tmp_path / "stamp"))


def test_outside_of_a_virtual_environment_make_goes_on_in_its_own(outside, lacking, tmp_path, capsys):
    own, again = str(tmp_path / ".venv"), ["-m", "tools.make.build", "all"]
    with pytest.raises(SystemExit):
        need(tmp_path)
    made, then = outside
    assert made[:2] == ["-m", "venv"] and made[-1] == own and then == [f"{own}/bin/python", *again]
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and sys.executable in said and "python3 test.py runs in it" in said
    with pytest.raises(SystemExit):
        need(tmp_path)
    assert outside[2:] == [then] and not capsys.readouterr().out  # it is there
    assert not lacking and not (tmp_path / "stamp").exists()


@pytest.mark.parametrize(
    "module, option", [("torch", "--system-site-packages"), ("ensurepip", "--without-pip")]
)
@pytest.mark.parametrize("there", [True, False])
def test_how_the_environment_is_made(outside, monkeypatch, tmp_path, module, option, there):
    """torch is not downloaded again. Debian's Python lacks ensurepip, so its own pip installs."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: (there or None) if name == module else found(name)
    )
    with pytest.raises(SystemExit):
        need(tmp_path)
    assert (option in outside[0]) == (there if module == "torch" else not there)


def test_an_environment_that_was_killed_is_made_again(outside, tmp_path):
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").touch()
    (tmp_path / ".venv.partial").touch()
    with pytest.raises(SystemExit):
        need(tmp_path)
    assert outside[0][:2] == ["-m", "venv"] and not (tmp_path / ".venv.partial").exists()


def test_a_python_that_the_user_names_is_not_changed(outside, lacking, monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHON_NAMED", "1")
    with pytest.raises(Refused, match=r"nothing is installed into it unasked.*INSTALL=1") as said:
        need(tmp_path)
    assert sys.executable in str(said.value) and "no-such-package-anywhere" in str(said.value)
    assert not outside and not lacking
    monkeypatch.setenv("INSTALL", "1")
    with pytest.raises(Refused, match="pip could not install"):
        need(tmp_path)
    assert not outside and lacking == [["-r", str(tmp_path / "some.txt")]]


def test_an_installed_toolkit_makes_no_environment(outside, monkeypatch, tmp_path):
    monkeypatch.setattr(requirements, "_OF_CHECKOUT", str(tmp_path / "test.py"))
    with pytest.raises(Refused, match="INSTALL=1"):
        need(tmp_path)
    assert not outside


def test_without_a_network(lacking, tmp_path):
    """pip is run once and fails; the message has the command."""
    with pytest.raises(Refused, match="no-such-package-anywhere") as said:
        need(tmp_path)
    assert f"{shlex.quote(sys.executable)} -m pip install -r requirements/some.txt" in str(said.value)
    assert lacking == [["-r", str(tmp_path / "some.txt")]]


@pytest.mark.parametrize("status, there, wanted", [(0, True, True), (0, False, False), (1, True, False)])
def test_after_pip(lacking, monkeypatch, tmp_path, status, there, wanted):
    """Both pip's status and the packages afterwards count: pip may succeed for another Python."""
    found = iter([["some"], [] if there else ["some"]])
    monkeypatch.setattr(requirements, "missing", lambda groups: next(found))
    monkeypatch.setattr(requirements, "_pip", lambda *arguments: status)
    if wanted:
        need(tmp_path)
    else:
        with pytest.raises(Refused, match="Missing Python packages: some"):
            need(tmp_path)
    assert (tmp_path / "stamp").exists() == wanted


def torch_of(config, monkeypatch, tmp_path, gpu=False, status=0) -> list[tuple]:
    """What pip is run with where torch is missing, and pip is set up so."""
    ran: list[tuple] = []
    monkeypatch.setattr(requirements, "file_of", lambda group: str(tmp_path / f"{group}.txt"))
    (tmp_path / "run.txt").write_text("torch>=2.5\n")
    missing = iter([["torch"], []])
    monkeypatch.setattr(requirements, "is_virtual", lambda: True)
    monkeypatch.setattr(requirements, "missing", lambda groups: next(missing))

    def pip(*arguments, alone=False):
        ran.append((*arguments, alone))
        return status if arguments[0].startswith("-q") else 0

    monkeypatch.setattr(requirements, "_pip", pip)
    monkeypatch.setattr(requirements, "_GPU", (str(tmp_path),) if gpu else ())
    monkeypatch.setattr(subprocess, "run", lambda *a, **b: subprocess.CompletedProcess(a, 0, config))
    requirements.need(["run"], str(tmp_path / "stamp"))
    return ran


FOR_THE_PROCESSOR = ("--index-url", "https://download.pytorch.org/whl/cpu", "torch>=2.5", True)


@pytest.mark.parametrize("config", ["global.index-url='https://example.org'", ":env:.no-index='1'"])
def test_an_index_in_the_place_of_pypi_is_used_as_it_is(monkeypatch, tmp_path, capsys, config):
    assert torch_of(config, monkeypatch, tmp_path) == [("-r", str(tmp_path / "run.txt"), False)]
    said = capsys.readouterr().out
    assert "torch from the index that pip is set up for" in said and "GB" not in said


@pytest.mark.parametrize("config", ["", "global.extra-index-url='https://example.org'"])
def test_torch_is_that_for_the_processor_where_there_is_no_gpu(monkeypatch, tmp_path, capsys, config):
    """Also where pip has a further index, as many machines do. It is said which torch comes."""
    assert torch_of(config, monkeypatch, tmp_path) == [FOR_THE_PROCESSOR]
    assert "torch for the processor" in capsys.readouterr().out


def test_with_a_gpu_torch_is_that_of_pypi(monkeypatch, tmp_path, capsys):
    ran = torch_of("global.extra-index-url='https://example.org'", monkeypatch, tmp_path, gpu=True)
    assert ran == [("-r", str(tmp_path / "run.txt"), False)] and "2 to 4 GB" in capsys.readouterr().out


@pytest.mark.parametrize("status", [0, 1])
def test_a_folder_of_wheels_comes_first(monkeypatch, tmp_path, capsys, status):
    """Its torch, if it has one, and then what that torch needs."""
    ran = torch_of(":env:.find-links='/wheels'", monkeypatch, tmp_path, status=status)
    then = FOR_THE_PROCESSOR if status else ("-r", str(tmp_path / "run.txt"), False)
    assert ran == [("-qqq", "--no-index", "--no-deps", "torch>=2.5", False), then]
    assert "GB" not in capsys.readouterr().out


def test_pip_looks_nowhere_else_for_the_processors_torch(monkeypatch, tmp_path):
    """pip's variables win over its files, which may name others."""
    monkeypatch.setattr(requirements, "_pip_command", lambda: [str(pip)])
    pip = tmp_path / "pip"
    pip.write_text(f"#!/bin/sh\necho $PIP_EXTRA_INDEX_URL $PIP_FIND_LINKS >{tmp_path}/seen\n")
    pip.chmod(0o755)
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://example.org")
    seen = {}
    for alone in (False, True):
        assert requirements._pip("torch", alone=alone) == 0
        seen[alone] = (tmp_path / "seen").read_text().split()
    assert seen == {False: ["https://example.org", "/wheels"], True: [FOR_THE_PROCESSOR[1]] * 2}


def test_large_downloads_are_said(monkeypatch, tmp_path, capsys):
    pip = tmp_path / "pip"
    pip.write_text(
        "#!/bin/sh\necho Collecting torch; echo '  Downloading torch-2.9-cp310.whl (899.7 MB)'\n"
        "echo '  Downloading x/rich-1.whl (243 kB)'; echo '  Downloading y-1.whl (1.2 GB)'; exit 3\n"
    )
    pip.chmod(0o755)
    monkeypatch.setattr(requirements, "_pip_command", lambda: [str(pip)])
    assert requirements._pip("torch") == 3
    assert capsys.readouterr().out == "  PIP   torch-2.9-cp310.whl: 899.7 MB\n  PIP   y-1.whl: 1.2 GB\n"


@pytest.mark.parametrize("prefix, base, wanted", [("/v", "/usr", True), ("/usr", "/usr", False)])
def test_what_is_a_virtual_environment(monkeypatch, prefix, base, wanted):
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "base_prefix", base)
    assert requirements.is_virtual() == wanted


@pytest.mark.parametrize("name, wanted", [("envs/mine", True), ("", False)])
def test_conda_s_own_environments(monkeypatch, tmp_path, name, wanted):
    prefix = tmp_path / name
    (prefix / "conda-meta").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(sys, "base_prefix", str(prefix))
    assert requirements.is_virtual() == wanted


@pytest.mark.parametrize(
    "environment, wanted",
    [({}, "{}/.venv/bin/python "), ({"VIRTUAL_ENV": "/v"}, "python3 "), ({"CONDA_DEFAULT_ENV": "mine"}, "python3 "),
     ({"CONDA_DEFAULT_ENV": "base"}, "{}/.venv/bin/python "), ({"PYTHON": "mypython"}, "mypython 1")],
)  # fmt: skip
def test_which_python_make_runs(tmp_path, environment, wanted):
    """An active environment's, else that of .venv; and whether the user has named it."""
    for name in ("Makefile", "mk"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").touch()
    (tmp_path / "more.mk").write_text('show:\n\t@echo "$$PYTHON $$PYTHON_NAMED"\n')
    plain = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "CONDA_DEFAULT_ENV", "PYTHON")}
    plain = {k: v for k, v in plain.items() if not k.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "-C", tmp_path, "-f", "Makefile", "-f", "more.mk", "--no-print-directory", "show"]
    said = subprocess.run(command, capture_output=True, text=True, env=plain | environment)
    assert said.stdout.rstrip("\n") == wanted.replace("{}/", ""), said.stderr


# Runs a script or a module as an old Python would.
OLD = """
import runpy, sys
sys.version_info = (3, 8, 1)
kind, name = sys.argv[1:]
sys.argv = ["-m" if kind == "-m" else name]
runpy.run_module(name) if kind == "-m" else runpy.run_path(name, run_name="__main__")
"""


@pytest.mark.parametrize(
    "words", [["-m", "tools.make.build"], ["-m", "cuffi.train"], ["", "test.py"], ["", "benchmarks/run.py"]]
)
def test_an_old_python_is_told_in_one_line(words):
    """Each way in refuses before a file is read that an old Python cannot read."""
    done = subprocess.run([sys.executable, "-c", OLD, *words], cwd=ROOT, capture_output=True, text=True)
    *lines, said = done.stderr.splitlines()
    assert done.returncode and "3.10 or newer" in said and "3.8" in said, done.stderr
    # A package may be imported by a script that has an answer to it, so it raises.
    assert not lines or (words[1] == "cuffi.train" and said.startswith("ImportError: "))


def test_the_files_that_tell_it_can_be_read_by_an_old_python():
    for file in ("tools/__init__.py", "cuffi/__init__.py", "test.py", "benchmarks/run.py"):
        ast.parse((ROOT / file).read_text(), feature_version=(3, 7))


def test_what_was_there_is_remembered(lacking, monkeypatch, tmp_path):
    """It is remembered for this Python, until a file of requirements differs: it may be older."""
    asked, stamp = [], tmp_path / "stamp"
    monkeypatch.setattr(requirements, "missing", lambda groups: asked.append(groups) or [])

    def needed() -> int:
        requirements.need(["some"], str(stamp))
        return len(asked)

    assert [needed(), needed()] == [1, 1]
    (tmp_path / "some.txt").write_text("pytest\nanother\n")
    os.utime(tmp_path / "some.txt", (5, 5))
    assert [needed(), needed()] == [2, 2]
    stamp.write_text("/another/python 3.0\n")
    assert [needed(), needed()] == [3, 3]


def test_from_the_command_line():
    def said(*groups):
        command = [sys.executable, "-m", "tools.make.requirements", *groups]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert (said("run").returncode, said("run").stdout + said("run").stderr) == (0, "")


def test_nothing_missing_installs_nothing(lacking, tmp_path):
    """That is remembered until the requirements change."""
    (tmp_path / "some.txt").write_text("pytest\n\n# nothing else\n")
    requirements.need(["some"], str(tmp_path / "stamp"))
    assert not lacking and sys.executable in (tmp_path / "stamp").read_text()


def test_what_another_requirements_file_asks_for(lacking, tmp_path):
    """A Python that has pytest, but not what a Python 2 script needs, would fail 700 tests."""
    (tmp_path / "some.txt").write_text("-r other.txt\npytest\n")
    (tmp_path / "other.txt").write_text("no-such-package-anywhere\n")
    assert requirements.missing(["some"]) == ["no-such-package-anywhere"]
    with pytest.raises(Refused, match="no-such-package-anywhere"):
        need(tmp_path)
    assert lacking  # pip was asked


def test_the_build_needs_no_lint_and_no_torch():
    wanted = Path(requirements.file_of("build")).read_text() + Path(requirements.file_of("run")).read_text()
    assert not any(
        name in wanted for name in ("ruff", "clang-format", "matplotlib", "scikit-learn", "pytest")
    )
    assert "torch" not in Path(requirements.file_of("build")).read_text()


def test_hidden_toolkit(tmp_path):
    """find_nvcc says nothing where there is nothing, and finds one in CUDA_HOME."""
    tool = ROOT / "tools" / "make" / "find_nvcc.py"
    home = tmp_path / "cuda"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "nvcc").write_text("binary")
    (home / "bin" / "nvcc").chmod(0o755)
    found = subprocess.run(
        [sys.executable, tool, str(home)], capture_output=True, text=True, env={"PATH": ""}
    ).stdout
    assert Path(found.strip()) == home / "bin" / "nvcc"


def test_the_suite_installs_what_it_needs(monkeypatch, capsys):
    """The second of the README's two commands, in an environment that had the first alone."""
    import test as suite  # test.py

    asked = []

    def need(groups, stamp):
        asked.append(groups)
        raise Refused("Missing Python packages: pytest")

    monkeypatch.setattr(requirements, "need", need)
    monkeypatch.delenv("LAYERS_DIR", raising=False)
    assert suite.main() == 1 and asked == [["build", "run", "test"]]
    assert "pytest" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options, meant",
    [("nets", "tests/nets"), ("-x nets layers", "-x tests/nets tests/layers"), ("-k nets", "-k nets"),
     ("tests/nets", "tests/nets"), ("-m toolkit", "-m toolkit"), ("nosuch", "nosuch")],
)  # fmt: skip
def test_a_wing_of_the_suite_has_a_name(options, meant):
    import test as suite  # test.py

    assert suite.parts(options.split()) == meant.split()


def test_the_toolkits_tests_are_those_of_no_wing():
    """Each folder of tests is a wing's, the toolkit's, or of something that is no part of the package."""
    import test as suite  # test.py

    assert {"tests/runtime", "tests/tools"} <= set(suite.parts(["toolkit"]))
    folders = {
        f.name
        for f in (ROOT / "tests").iterdir()
        if (f / "conftest.py").exists() or any(f.glob("**/test_*.py"))
    }
    others = {
        "caffe_layers",
        "nets",
        "old_torch",
        "base",
        "caffe_files",
        "benchmarks",
        "commands",
        "docs",
        "examples",
    }
    assert folders == {*suite.TOOLKIT, *others, "lab", "packaging"}


@pytest.mark.parametrize(
    "options, limited",
    [("-n 15", True), ("-n15 -q", True), ("-q -n auto", True), ("--numprocesses=4", True), ("tests -n 2", True),
     ("-n 0", False), ("-n0", False), ("tests/tools/make", False), ("--numprocesses 0", False),
     ("-k not-now tests", False)],
)  # fmt: skip
def test_workers_that_somebody_asks_for_share_the_cores(monkeypatch, options, limited):
    """They do as the suite's default workers do: no thread of OpenMP spins while it waits."""
    import test as suite  # test.py

    environment = {}
    monkeypatch.setattr(os, "environ", environment)
    assert suite.workers(options.split()) == []
    assert environment == ({"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"} if limited else {})


def test_the_tests_ask_for_what_make_asks_for():
    """A Python that has pytest and torch, and not what make needs: make goes on in .venv, and test.py must, too."""
    (groups,) = re.findall(r"requirements\.need\((\[.*?\])", (ROOT / "test.py").read_text())
    of_make = re.findall(r"need\((\[.*?\])", (ROOT / "tools/make/build.py").read_text())
    assert of_make and all(set(ast.literal_eval(one)) <= set(ast.literal_eval(groups)) for one in of_make)

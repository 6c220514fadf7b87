"""Lines of Python with the tests that ran them, from each process of a run (__main__.py starts it so).

A worker of pytest's changes the context of coverage from test to test. All that another process runs, a fork or a new
Python, is of the test that started it, whose name pytest leaves in the environment.
"""

import atexit
import os
from pathlib import Path
from typing import NoReturn

import coverage

FILES = (
    "**/cuffi/*.py",
    "**/cuffi/**/*.py",
    "**/tools/*.py",
    "**/tools/**/*.py",
    "**/layers/**/*.py",
    "**/build_ffi.py",
)
_exit = os._exit


def start() -> None:
    global measured
    file = f"{os.environ['LINES_OF_TESTS']}/lines"
    measured = coverage.Coverage(file, data_suffix=True, config_file=False, include=FILES, messages=False)
    measured.set_option("run:disable_warnings", ["no-data-collected"])
    measured.start()


def save() -> None:
    global measured
    if measured is None:
        return
    ended, measured = measured, None
    ended.stop()
    ended.save()
    name = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    Path(f"{ended.get_data().data_filename()}.test").write_text(name)


def in_a_fork() -> None:
    if measured is not None:
        measured.stop()
        start()


def exit_at_once(status: int) -> NoReturn:
    save()
    _exit(status)


def pytest_runtest_logstart(nodeid: str) -> None:
    if measured is not None:
        measured.switch_context(nodeid)


def pytest_runtest_logfinish(nodeid: str) -> None:
    if measured is not None:
        measured.switch_context("")


measured: coverage.Coverage | None = None
start()
vars(os)["_exit"] = exit_at_once
os.register_at_fork(after_in_child=in_a_fork)
atexit.register(save)

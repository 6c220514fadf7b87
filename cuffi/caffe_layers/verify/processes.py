"""Verify a layer in a child process, so that a crash or an endless loop is reported as the layer's."""

from __future__ import annotations

import ctypes
import faulthandler
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import torch

from tools.cases.races import Watch, kernels_of, watched

from ...runtime.cases import load_package
from . import unset
from .table import CRASHED, Row
from .verification import Verification

PR_SET_PDEATHSIG = 1  # linux/prctl.h
# Seconds for a guess. With inputs that do not fit, a layer may never end.
PATIENCE = 30
# How much of a process's last output is shown.
MOST_LETTERS = 300


def prepare_child(said: IO) -> None:
    # End with the parent; otherwise a layer in an endless loop would keep running.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    logging.getLogger("caffe").setLevel(logging.CRITICAL)
    # The parent reports how it ended, and the C library's message, such as `free(): invalid next size`.
    faulthandler.disable()
    os.dup2(said.fileno(), 2)
    # One thread, because all inputs are tiny.
    torch.set_num_threads(1)


def in_child(pipe, layers_dir: Path, layer: str, options, crashed: dict[str, str]) -> None:
    def send(kind: str, value) -> None:
        pipe.send((kind, value))

    try:
        Verification(load_package(layers_dir), layer, options, send, crashed).run()
    except Exception as error:
        send("row", Row(layer, "", "", remark=f"{type(error).__name__}: {error}"))
    pipe.close()


@dataclass
class ChildReport:
    """The messages of one child process, and how it ended.

    Attributes:
        rows: the results that it sent, of the kind that its work makes.
        doing: 'guessing' or 'running', at its end.
        what: the setting that it was guessing or running.
        guess: the guess that it was running; empty if the shapes were not guessed.
        steps: how often it said that it was running something.
        end: how it ended; empty if normally.
    """

    rows: list = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    doing: str = ""
    what: str = ""
    guess: str = ""
    steps: int = 0
    end: str = ""


def run_child(work: Callable, *arguments, running: float | None = None) -> ChildReport:
    """Run `work(pipe, *arguments)` in a child process, and end it if it sends nothing in time.

    Args:
        running: seconds in which what is 'running' must end; None: any time.
    """
    context, report = multiprocessing.get_context("fork"), ChildReport()
    ours, theirs = context.Pipe(duplex=False)
    with tempfile.TemporaryFile() as said:
        child = context.Process(target=started, args=(said, work, theirs, *arguments))
        child.start()
        theirs.close()
        hear(ours, report, {"guessing": PATIENCE, "running": running})
        if report.end:
            child.kill()
        child.join()
        said.seek(0)
        text = said.read().decode(errors="replace").strip()
    if child.exitcode and not report.end:
        how = signal.Signals(-child.exitcode).name if child.exitcode < 0 else f"exit status {child.exitcode}"
        report.end = f"its process ended by {how}" + f", with these words: {text[-MOST_LETTERS:]}" * bool(
            text
        )
    elif text:
        print(text, file=sys.stderr)
    return report


def hear(pipe, report: ChildReport, patience: dict[str, float | None]) -> None:
    """Fill in what a child sends, until its end. `patience`: the seconds that it may be at something."""
    while True:
        most = patience.get(report.doing)
        if most is not None and not pipe.poll(most):
            report.end = f"no end after {most} s"
            return
        try:
            kind, value = pipe.recv()
        except EOFError:
            return
        if kind == "row":
            report.rows.append(value)
        elif kind == "say":
            report.lines.append(value)
        else:
            report.doing, report.steps = kind, report.steps + 1
            report.what, report.guess = (value, value) if kind == "guessing" else value


def started(said: IO, work: Callable, *arguments) -> None:
    prepare_child(said)
    work(*arguments)


def verify(layers_dir: Path, layer: str, options) -> tuple[list[Row], dict[str, str]]:
    """The rows of a layer, and the guesses that ended a process, because code for other shapes may crash.

    Such a guess is left out, because it says nothing about the layer.
    """
    crashed: dict[str, str] = {}
    while True:
        report = run_child(in_child, layers_dir, layer, options, crashed)
        if report.end and report.guess and report.guess not in crashed:
            crashed[report.guess] = report.end
            continue
        print(*report.lines, sep="\n", end="\n" * bool(report.lines))
        if report.end:
            report.rows.append(Row(report.what or layer, "", "", verdict=CRASHED, remark=report.end))
        else:
            find_unset(layers_dir, layer, options, crashed)
        return report.rows, crashed


def find_unset(layers_dir: Path, layer: str, options, crashed: dict[str, str]) -> None:
    """Print which settings show that the layer reads a member that nothing has set."""
    report = run_child(unset_child, layers_dir, layer, options, crashed, running=PATIENCE)
    if report.end and report.doing == "running":
        said = unset.words(layers_dir / layer, report.what.split()[0])
        report.lines.append(f"{report.what}: {said}. There {report.end}")
    print(*report.lines, sep="\n", end="\n" * bool(report.lines))


def unset_child(pipe, layers_dir: Path, layer: str, options, crashed: dict[str, str]) -> None:
    def send(kind: str, value) -> None:
        if kind == "guessing":  # wait for its end
            pipe.send((kind, value))

    verification = Verification(load_package(layers_dir), layer, options, send, crashed)
    for setting in verification.settings():
        for kind, value in verification.find_unset(setting):
            pipe.send((kind, value))
    pipe.close()


def find_races(layers_dir: Path, layer: str, options, crashed: dict[str, str]) -> tuple[Watch, bool]:
    """Run a layer's kernels on the host, in a copy of its folder that was built with SANITIZE=races.

    Returns:
        The races, and whether the layer has kernels but none ran.
    """
    with watched() as watch:  # in the parent, so that races before a crash are reported, too
        report = run_child(race_child, layers_dir, layer, options, crashed)
    end = f"; it did not finish: {report.end}" * bool(report.end)
    own = kernels_of(layers_dir / layer)
    print(f"race finder: {watch.summary(own)}{end}")
    return watch, bool(own) and not report.end and watch.kernels.isdisjoint(own)


def race_child(pipe, layers_dir: Path, layer: str, options, crashed: dict[str, str]) -> None:
    def send(kind: str, value) -> None:
        if kind == "guessing":  # wait for its end
            pipe.send((kind, value))

    verification = Verification(load_package(layers_dir, "with_race_finder"), layer, options, send, crashed)
    for setting in verification.settings():
        verification.run_kernels_on_host(setting)
    pipe.close()

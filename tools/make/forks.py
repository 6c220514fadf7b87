"""Run make, and the Python programs of its recipes in forks of this process.

A recipe says `$(PYTHON) $(CUFFI_FORK) -m tools.cuda.to_host ...`. For a small file, to start Python and to import the
program takes several times as long as its work. So make gets CUFFI_FORK, which turns the command into a small client
(ask_fork.py). The client sends its words, its folder, its environment and its files 0, 1 and 2. This process imports
the program, once for all, and forks; the fork calls its main(). Without CUFFI_FORK, or where nobody answers, Python
runs the program as it stands in the recipe.
"""

from __future__ import annotations

import contextlib
import importlib
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import NoReturn

from .ask_fork import NOT_HERE

# Of make's environment: the options and words between Python and a program.
VARIABLE = "CUFFI_FORK"
# From the toolkit's folder, in which make runs: it stands unquoted in a command.
CLIENT = "tools/make/ask_fork.py"
# More than Linux lets a socket of this kind hold at once.
LARGEST = 1 << 18


def possible() -> bool:
    """Is this a process of one thread, whose children nobody else waits for? Only then a fork is like its parent."""
    try:
        alone = len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False
    return alone and signal.getsignal(signal.SIGCHLD) in (signal.SIG_DFL, None)


def call(command: list[str], environment: Mapping[str, str]) -> int:
    """Run make, which inherits open files. Returns its status."""
    # What the surroundings have is a word that somebody set, or the socket of another make.
    environment = {name: value for name, value in environment.items() if name != VARIABLE}
    if not possible():
        return subprocess.call(command, env=environment, close_fds=False)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, _ended_children() as ended:
        with theirs:
            theirs.set_inheritable(True)
            own = {VARIABLE: f"-I -S {CLIENT} {theirs.fileno()}"}
            make = subprocess.Popen(command, env={**environment, **own}, close_fds=False)
        forks: set[int] = set()
        try:
            _serve(make, ours, ended, forks)
        finally:  # after an error here, who asks gets no answer, and runs the program itself
            ours.close()
            _end(forks)
            make.wait()
    return make.returncode


@contextlib.contextmanager
def _ended_children():
    """A file that can be read when a child of this process has ended."""
    read, write = os.pipe()
    for file in (read, write):
        os.set_blocking(file, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield read
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(read)
        os.close(write)


def _serve(make: subprocess.Popen, asked: socket.socket, ended: int, forks: set[int]) -> None:
    """Fork for each request, until make has ended."""
    waits = select.poll()
    waits.register(asked, select.POLLIN)
    waits.register(ended, select.POLLIN)
    while make.poll() is None:
        for file, _ in waits.poll():
            if file == ended:
                os.read(ended, 1 << 12)
                forks -= {pid for pid in forks if os.waitpid(pid, os.WNOHANG)[0]}
            else:
                message, files, *_ = socket.recv_fds(asked, LARGEST, 4)
                if message:
                    forks.add(_forked(marshal.loads(message), files, (asked.fileno(), ended)))
                else:  # nobody has the other end any more
                    waits.unregister(asked)


def _end(forks: set[int]) -> None:
    """End the forks whose make has ended. They hold its locks until then."""
    for pid in forks:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)


def _forked(request: tuple, files: list[int], own: tuple[int, ...]) -> int:
    """Fork for a request. Returns the fork's number.

    Args:
        files: the client's 0, 1 and 2, and the end of a pipe for the answer.
        own: what a fork must close.
    """
    words, folder, environment = request
    program = _program(words)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        pid = os.fork()
        if not pid:
            _answer(program, words, folder, environment, files, own)
    finally:
        for file in files:
            os.close(file)
    return pid


def _program(words: list[str]) -> tuple[Callable[[], int], list[str]] | None:
    """The function of a command `-m module word ...` or `file.py word ...`, and its sys.argv; None if there is none."""
    name, words = (words[1], words[2:]) if words[0] == "-m" else (words[0].removesuffix(".py"), words[1:])
    try:
        module = importlib.import_module(name)
        return module.main, [str(module.__file__), *words]
    except (ImportError, AttributeError):
        return None


def _answer(program, words, folder, environment, files, own) -> NoReturn:
    """Be the program, in a fork."""
    *streams, answer = files
    status = NOT_HERE
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, file in enumerate(streams):
            os.dup2(file, number)
        for file in (*streams, *own):
            os.close(file)
        if program:
            status = str(_status(*program, folder, environment)).encode()
    finally:
        os.write(answer, status)
        os._exit(0)


def _status(main: Callable[[], int], argv: list[str], folder: bytes, environment: dict[bytes, bytes]) -> int:
    """The exit status of a program in this fork, as Python has it."""
    os.chdir(folder)
    os.environb.clear()
    os.environb.update(environment)
    if "tempfile" in sys.modules:
        vars(sys.modules["tempfile"])["tempdir"] = None  # make's programs have a TMPDIR of their own
    sys.argv = argv
    sys.stdout = open(1, "w", closefd=False, errors=sys.stdout.errors)  # noqa: SIM115 (the fork ends with it)
    try:
        sys.exit(main())
    except SystemExit as end:
        status = end.code
        if not isinstance(status, int | None):
            print(status, file=sys.stderr)
            status = 1
    except KeyboardInterrupt:
        status = 130
    except BaseException:
        traceback.print_exc()
        status = 1
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # a full disk
        status = status or 1
    return int(status or 0) & 255

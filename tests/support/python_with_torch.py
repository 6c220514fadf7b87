"""Processes of Python in which torch has been imported: to import it takes 1.7 s of processor.

`run` is like subprocess.run for a command of this Python, and `script` like this Python. The first call starts a
server: a new process, which only imports torch. Each command runs in a fork of the server, so nothing that a test
imported or set reaches it. Exception: torch is imported before, so variables that torch reads at import have no effect.
The workers of test.py are such forks, too, and share its server.
"""

import atexit
import contextlib
import functools
import gc
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import types
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_TEMPORARY = tempfile.gettempdir()  # before a test sets its own
_LARGEST = 1 << 17  # of the messages, which are one command and its environment each
_SHARED = "PYTHON_WITH_TORCH"  # in the environment: the folder of the server that a run's processes share


def run(
    command: Sequence[str | Path], cwd: Path = ROOT, env: dict | None = None, timeout: float = 300
) -> subprocess.CompletedProcess:
    """The command's status, what it printed, and its errors.

    Args:
        command: after this Python -c and a script, -m and a module, or a file, and the arguments of these.
        env: this process's if nothing is said.
    """
    python, *words = (os.fspath(word) for word in command)
    assert python == sys.executable
    with (
        open(os.devnull) as nothing,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as errors,
    ):
        files = [nothing.fileno(), out.fileno(), errors.fileno()]
        status = _ask(_folder(), words, os.fspath(cwd), os.environ if env is None else env, files, timeout)
        out.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(command, status, out.read(), errors.read())


def script() -> str:
    """An executable that is like this Python."""
    return f"{_folder()}/python"


def share() -> None:
    """From here on this process and all that it starts have one server, which ends with this process."""
    os.environ[_SHARED] = _folder()


def _folder() -> str:
    return os.environ.get(_SHARED) or _server(os.getpid())


@contextlib.contextmanager
def _address(folder: str):
    """Of the folder's socket. It is short: a socket's may have 107 characters, and the folder's name may have more."""
    opened = os.open(folder, os.O_PATH)
    try:
        yield f"/proc/self/fd/{opened}/socket"
    finally:
        os.close(opened)


def _ask(folder: str, words: list[str], cwd: str, env, files: list[int], timeout: float | None = None) -> int:
    """The status of the command, whose input, output and errors are the three files."""
    message = json.dumps([words, cwd, dict(env)]).encode()
    assert len(message) < _LARGEST
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as ours:
        with _address(folder) as address:
            ours.connect(address)
        socket.send_fds(ours, [message], files)
        ours.settimeout(timeout)
        group = int(ours.recv(_LARGEST))
        try:
            return int(ours.recv(_LARGEST))
        except (TimeoutError, KeyboardInterrupt):
            os.killpg(group, signal.SIGKILL)
            raise


@functools.cache
def _server(of_process: int) -> str:
    """Start the server of this process, which ends with it; the folder with its socket."""
    folder = tempfile.mkdtemp(dir=_TEMPORARY)
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    ours, theirs = socket.socketpair()
    with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        with _address(folder) as address:
            listener.bind(address)
        listener.listen()
        command = [sys.executable, __file__, "serve", str(listener.fileno())]
        process = subprocess.Popen(
            command,
            env=environment,
            pass_fds=[listener.fileno()],
            stdin=theirs.fileno(),
            cwd="/",
            start_new_session=True,
        )
    script = Path(folder) / "python"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -SE "{__file__}" ask "{folder}" "$@"\n')
    script.chmod(0o700)

    def end() -> None:
        if os.getpid() == of_process:
            ours.shutdown(socket.SHUT_RDWR)  # also where forks of this process have it
            process.wait()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return folder


# --------------------------------------------------------------------------------- in the server


def serve(listener: socket.socket) -> None:
    """Run each message's command in a fork of a fork, which tells how it ended."""
    forks = set()
    while True:
        ready, _, _ = select.select([listener, 0], [], [])
        if 0 in ready:  # the owner has ended
            for fork in forks:
                os.waitpid(fork, 0)
            os._exit(0)  # at once: Python would take torch apart
        asked, _ = listener.accept()
        forks = {fork for fork in forks if os.waitpid(fork, os.WNOHANG) == (0, 0)}
        if fork := os.fork():
            forks.add(fork)
            asked.close()
            continue
        listener.close()
        os.setsid()
        message, files, _, _ = socket.recv_fds(asked, _LARGEST, 3)
        child = os.fork()
        if not child:
            asked.close()
            become(message, files)
        for file in files:
            os.close(file)
        with asked, contextlib.suppress(BrokenPipeError):
            asked.sendall(str(os.getpid()).encode())
            _, status = os.waitpid(child, 0)
            asked.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)


def become(message: bytes, files: list[int]) -> None:
    """Be the command's process, to its end."""
    words, folder, environment = json.loads(message)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout, sys.stderr = (os.fdopen(file, "w", closefd=False) for file in (1, 2))
    path = [folder for folder in environment.get("PYTHONPATH", "").split(os.pathsep) if folder]
    status = 1
    try:
        status = execute(words, path)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        vars(threading)["_shutdown"]()  # private: types do not have it
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def execute(words: list[str], path: list[str]) -> int:
    """What python does with these words."""
    words = words[words[0] == "-u" :]  # which is for text that nobody flushes
    kind, rest = words[0], words[1:]
    if kind == "-c":
        sys.argv, sys.path[:1] = ["-c", *rest[1:]], ["", *path]
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    elif kind == "-m":
        sys.argv, sys.path[:1] = rest, [os.getcwd(), *path]
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[:1] = words, [os.path.dirname(os.path.realpath(kind)), *path]
        runpy.run_path(kind, run_name="__main__")
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        with contextlib.suppress(KeyboardInterrupt):
            sys.exit(_ask(sys.argv[2], sys.argv[3:], os.getcwd(), os.environ, [0, 1, 2]))
        sys.exit(128 + signal.SIGINT)
    import torch  # noqa: F401 (for the forks)

    gc.freeze()  # else a fork that collects garbage looks through torch, and so copies all pages of it
    serve(socket.socket(fileno=int(sys.argv[2])))

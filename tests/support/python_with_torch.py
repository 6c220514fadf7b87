"""Processes of Python in which torch has been imported: to import it takes 1.5 s of processor.

`run` is like subprocess.run for a command of this Python. The first one of a worker starts a server: a new process,
which imports torch and nothing else. Each command is run in a fork of that one. So it knows of nothing that the tests
have imported, set or called; of torch's import alone it cannot see the environment.
"""

import atexit
import contextlib
import functools
import json
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_LARGEST = 1 << 17  # of the messages, which are one command and its environment each


def run(
    command: list, cwd: Path = ROOT, env: dict | None = None, timeout: float = 300
) -> subprocess.CompletedProcess:
    """The command's status, what it printed, and its errors.

    Args:
        command: after this Python -c and a script, -m and a module, or a file, and the arguments of these.
        env: this process's if nothing is said.
    """
    python, *words = map(os.fspath, command)
    assert python == sys.executable
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        files = [output.fileno(), errors.fileno()]
        status = _ask(server(), words, os.fspath(cwd), os.environ if env is None else env, files, timeout)
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(command, status, output.read(), errors.read())


def server() -> socket.socket:
    """Where the server of this process, which ends with it, takes its messages."""
    return _server(os.getpid())[0]


def script() -> str:
    """An executable that is like this Python, for processes that inherit the server's socket."""
    return _server(os.getpid())[1]


def _ask(channel, words: list[str], cwd: str, env, files: list[int], timeout: float | None = None) -> int:
    """The status of the command, which prints to the two files."""
    message = json.dumps([words, cwd, dict(env)]).encode()
    assert len(message) < _LARGEST
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            socket.send_fds(channel, [message], [*files, theirs.fileno()])
        ours.settimeout(timeout)
        answers = ours.makefile()
        group = int(answers.readline())
        try:
            return int(answers.readline())
        except TimeoutError:
            os.killpg(group, signal.SIGKILL)
            raise


@functools.cache
def _server(of_process: int) -> tuple[socket.socket, str]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    with theirs:
        command = [sys.executable, __file__, "serve", str(theirs.fileno())]
        process = subprocess.Popen(
            command, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd="/"
        )
    folder = tempfile.mkdtemp()
    script = Path(folder) / "python"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -SE "{__file__}" ask {ours.fileno()} "$@"\n')
    script.chmod(0o700)

    def end() -> None:
        ours.shutdown(socket.SHUT_RDWR)  # also where forks of this process have it
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return ours, str(script)


# --------------------------------------------------------------------------------- in the server


def serve(channel: socket.socket) -> None:
    """Run each message's command in a fork of a fork, which tells how it ended."""
    forks = set()
    while True:
        message, files, _, _ = socket.recv_fds(channel, _LARGEST, 3)
        forks = {fork for fork in forks if os.waitpid(fork, os.WNOHANG if message else 0) == (0, 0)}
        if not message:
            os._exit(0)  # at once: Python would take torch apart
        if fork := os.fork():
            forks.add(fork)
            for file in files:
                os.close(file)
            continue
        channel.close()
        os.setsid()
        child = os.fork()
        if not child:
            become(message, files)
        with socket.socket(fileno=files[2]) as answers, contextlib.suppress(BrokenPipeError):
            answers.sendall(f"{os.getpid()}\n".encode())
            _, status = os.waitpid(child, 0)
            answers.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)


def become(message: bytes, files: list[int]) -> None:
    """Be the command's process, to its end."""
    words, folder, environment = json.loads(message)
    os.dup2(files[0], 1)
    os.dup2(files[1], 2)
    for file in files:
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
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
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def execute(words: list[str], path: list[str]) -> int:
    """What python does with these words."""
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
    what, socket_of_server = sys.argv[1], socket.socket(fileno=int(sys.argv[2]))
    if what == "ask":
        sys.exit(_ask(socket_of_server, sys.argv[3:], os.getcwd(), os.environ, [1, 2]))
    import torch  # noqa: F401 (for the forks)

    serve(socket_of_server)

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
    message = json.dumps([words, os.fspath(cwd), dict(os.environ if env is None else env)]).encode()
    assert len(message) < _LARGEST
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        with theirs:
            files = [output.fileno(), errors.fileno(), theirs.fileno()]
            socket.send_fds(_server(os.getpid()), [message], files)
        ours.settimeout(timeout)
        answers = ours.makefile()
        group = int(answers.readline())
        try:
            status = int(answers.readline())
        except TimeoutError:
            os.killpg(group, signal.SIGKILL)
            raise
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(command, status, output.read(), errors.read())


@functools.cache
def _server(of_process: int) -> socket.socket:
    """Where the server of this process, which ends with it, takes its messages."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    with theirs:
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            env=environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            cwd="/",
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# --------------------------------------------------------------------------------- in the server


def serve(channel: socket.socket) -> None:
    """Run each message's command in a fork of a fork, which tells how it ended."""
    forks = set()
    while True:
        message, files, _, _ = socket.recv_fds(channel, _LARGEST, 3)
        forks = {fork for fork in forks if os.waitpid(fork, os.WNOHANG if message else 0) == (0, 0)}
        if not message:
            return
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
    import torch  # noqa: F401 (for the forks)

    serve(socket.socket(fileno=int(sys.argv[1])))

"""Run a Python program in a fork of the program that runs make (forks.py), and end as it does.

    python -I -S tools/make/ask_fork.py 5 -m tools.cuda.to_host foo.cu foo.cpp

5 is a socket that make inherits. If nobody there has the program, it runs in this process's place. This file imports
little, and makes Python start without the packages' folders: it is started for each program of a build.
"""

import _socket  # `socket` takes as long to import as all the rest
import marshal
import os
import sys

# The answer of who does not have the program.
NOT_HERE = b"?"
# Numbers of open files as the kernel takes them: C's int.
WIDTH = 4


def ask(number: int, words: list[str]) -> bytes:
    """What the fork answers: its status, or NOT_HERE. Nothing if it was killed."""
    read, write = os.pipe()
    message = marshal.dumps((words, os.getcwdb(), dict(os.environb)))
    files = b"".join(file.to_bytes(WIDTH, sys.byteorder) for file in (0, 1, 2, write))
    asked = _socket.socket(fileno=number)
    asked.sendmsg([message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
    os.close(write)
    return os.read(read, 16)


def main() -> int:
    number, words = int(sys.argv[1]), sys.argv[2:]
    try:
        answer = ask(number, words)
    except OSError:  # the socket is closed, or the environment is too large for a message
        answer = NOT_HERE
    if answer == NOT_HERE:
        os.execv(sys.executable, [sys.executable, *words])
    return int(answer or 1)


if __name__ == "__main__":
    sys.exit(main())

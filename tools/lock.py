"""Run a command while no other runs under the same lock: two makes in one tree would write the same files.

    python tools/lock.py build/lock make libraries

The lock is the open file, which the command and its children inherit: it is free when the last of them has
ended, however that came about.
"""

import fcntl
import os
import sys

if __name__ == "__main__":
    lock = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
    os.set_inheritable(lock, True)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("  WAIT  for another make in this folder", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
    os.execvp(sys.argv[2], sys.argv[2:])

"""Ctrl-C waits for the block's own check; a second one does not."""

import os
import signal

import pytest

from cuffi.nets.solver.interrupt import deferred


@pytest.fixture(autouse=True)
def handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def test_the_first_waits_and_the_second_does_not():
    done = []
    with pytest.raises(KeyboardInterrupt), deferred() as check:
        check()
        os.kill(os.getpid(), signal.SIGINT)
        done.append("whole")
        check()
        done.append("never")
    with pytest.raises(KeyboardInterrupt), deferred():
        os.kill(os.getpid(), signal.SIGINT)
        done.append("still")
        os.kill(os.getpid(), signal.SIGINT)
        done.append("never")
    assert done == ["whole", "still"]


def test_a_program_s_own_handler_stays():
    came = []
    signal.signal(signal.SIGINT, lambda *_: came.append(1))
    with deferred() as check:
        os.kill(os.getpid(), signal.SIGINT)
        check()
    assert came == [1]
    signal.signal(signal.SIGINT, signal.default_int_handler)

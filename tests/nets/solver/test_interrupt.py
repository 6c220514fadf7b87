"""Ctrl-C waits for the block's own check; a second one does not."""

import os
import signal

import pytest

from cuffi.nets.solver.interrupt import deferred, hang_up_deferred


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


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP here")
def test_a_closed_terminal_waits_for_the_check_and_the_block_goes_on():
    done = []
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with hang_up_deferred(lambda: done.append("snapshot")) as check:
        check()
        os.kill(os.getpid(), signal.SIGHUP)
        done.append("whole")
        check()
        check()
    assert done == ["whole", "snapshot"]
    assert signal.signal(signal.SIGHUP, signal.SIG_IGN) is signal.SIG_DFL
    with hang_up_deferred(lambda: done.append("never")) as check:  # under nohup
        os.kill(os.getpid(), signal.SIGHUP)
        check()
    assert signal.signal(signal.SIGHUP, before) is signal.SIG_IGN
    assert len(done) == 2

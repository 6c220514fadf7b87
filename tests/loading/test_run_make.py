"""make as load runs it: Ctrl-C, and the line of progress."""

import os
import pty
import signal

import pytest
from support.load import loads, wait_for
from support.workshop import Fork

pytestmark = pytest.mark.usefixtures("cache")


def test_ctrl_c_stops_the_compilers(own_cache, compiler):
    compiler.hold.touch()
    # As in a terminal: a shell starts what runs in its background with Ctrl-C ignored, the suite for one.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    process = Fork(heard + loads(5))
    wait_for(lambda: compiler.starts)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in error
    assert not [p for p in own_cache.glob("fills-*") if p.is_dir()]  # nothing is half-built
    # What held the lock is gone, or this would wait for ever.
    compiler.hold.unlink()
    assert Fork(loads(5)).communicate()[0] == "5.0 5.0 5.0\n"


def test_silent_where_nobody_looks(own_cache, capfd):
    exec(loads(8), {})
    assert tuple(capfd.readouterr()) == ("8.0 8.0 8.0\n", "")


def test_a_line_turns_in_a_terminal(own_cache):
    control, terminal = pty.openpty()
    process = Fork(loads(9), stderr=terminal)
    os.close(terminal)
    seen = b""
    while True:
        try:
            chunk = os.read(control, 4096)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        seen += chunk
    os.close(control)
    assert process.communicate()[0] == "9.0 9.0 9.0\n"
    text = seen.decode()
    assert "building fills" in text and "CXX fills/fills.cu" in text
    assert text.endswith(" \r")  # the line is wiped

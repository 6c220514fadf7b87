"""Loops that wait for another thread ask whether they may go on."""

import pytest
from support.rewriting import rewrite_text

from tools.cuda.spinning import spinning_loops

HEAD = "__global__ void k(volatile int* flag, int* y) { "
ASK = "::cuda_host::may_"


@pytest.mark.parametrize(
    "loop, wanted",
    [
        ("while (*flag == 0);", f"while ({ASK}wait() && ::cuda_host::waited(bool((*flag == 0))));"),
        ("while (y[0] == 0) ;", f"while ({ASK}wait() && ::cuda_host::waited(bool((y[0] == 0)))) ;"),
        ("for (;;) if (*flag) break;", f"for (; {ASK}spin();) if ("),
        (
            "do { y[0] += flag[1]; } while (y[0] < 9);",
            f"while ({ASK}wait() && ::cuda_host::waited(bool((y[0] < 9))));",
        ),
        ("for (int i = 0; i < 3; ++i) y[i] = 1;", "for (int i = 0; i < 3; ++i) y[i] = 1;"),
    ],
)
def test_loops(loop, wanted):
    text = rewrite_text(HEAD + loop + " }")
    assert wanted in text and (ASK in text) == (ASK in wanted)


def test_the_hosts_own_loops_stay():
    text = "void wait(volatile int* flag) { while (*flag == 0); }"
    assert rewrite_text(text) == text
    assert callable(spinning_loops)

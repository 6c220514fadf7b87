"""caffe.Timer, and the names for several GPUs."""

import time

import pytest

from cuffi import caffe


def test_a_timer_and_one_process():
    timer = caffe.Timer()
    timer.start()
    time.sleep(0.02)
    timer.stop()
    assert 20 <= timer.ms == pytest.approx(timer.us / 1e3) == pytest.approx(1e3 * timer.seconds)
    assert (caffe.has_nccl(), caffe.solver_count(), caffe.solver_rank()) == (False, 1, 0)
    with pytest.raises(RuntimeError, match="torchrun"):
        caffe.NCCL(None, None)
    assert {"Data", "WindowData", "Convolution", "Split"} <= set(caffe.layer_type_list())

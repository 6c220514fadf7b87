"""Lines of the log in glog's form, and the lines of a net's outputs."""

import re

import torch

from cuffi.nets.solver.caffe_log import formed, scores, to_stderr


def test_a_line_has_glog_s_form(capsys):
    to_stderr(formed("Iteration 3, loss = 2", "W"))
    written = capsys.readouterr()
    form = r"W\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ solver\.cpp:\d+\] Iteration 3, loss = 2\n"
    assert re.fullmatch(form, written.err) and not written.out


def test_each_number_of_an_output_has_a_line():
    values = {"accuracy": torch.tensor([0.5, 0.25]), "loss": torch.tensor(1e-7)}
    assert list(scores("Test", values, {"loss": 2.0})) == [
        "    Test net output #0: accuracy = 0.5",
        "    Test net output #1: accuracy = 0.25",
        "    Test net output #2: loss = 1e-07 (* 2 = 2e-07 loss)",
    ]

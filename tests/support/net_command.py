"""`make net` on a prototxt: its environment and its file."""

import sys

import pytest
import torch

TEXT = """name: "[b]small"
input: "in" input_shape { dim: 2 dim: 3 dim: 4 dim: 4 }
layer { name: "c" type: "Convolution" bottom: "in" top: "c"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "n" type: "BatchNorm" bottom: "c" top: "n" }
layer { name: "s" type: "Scale" bottom: "n" top: "s" }
layer { name: "[/own]" type: "Normalize" bottom: "s" top: "own" }
layer { name: "sum" type: "Reduction" bottom: "own" top: "sum" }
"""
OWN = """input: "data" input_shape { dim: 2 dim: 3 dim: 4 dim: 4 }
layer { name: "own" type: "Normalize" bottom: "data" top: "own" }
"""


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The options of a command line; a prototxt's text becomes a file."""
    for name in (
        "PROTOTXT",
        "WEIGHTS",
        "CAFFE",
        "PHASE",
        "SHAPES",
        "REPLACE",
        "IGNORE",
        "STAGES",
        "PYTHON_LAYERS",
        "PYTHON_PATH",
        "LAYERS_DIR",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def ask(target, text="", **settings):
        if text:
            (tmp_path / "x.prototxt").write_text(text)
            settings["PROTOTXT"] = str(tmp_path / "x.prototxt")
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["net", *target.split()])

    yield ask
    torch.set_default_dtype(torch.float32)

"""Run a Caffe layer that has no cases.py, for `make sanitize` and for `make test` of an installed toolkit."""

import argparse
import contextlib

import torch

from .probe import NoCode
from .verification import Verification
from .verify_inputs import modules_of


def run(package: str, name: str, dtype: torch.dtype, device: str) -> int:
    """Run it on inputs that `make verify` guesses. Returns the number of runs."""
    options = argparse.Namespace(param="", shapes="", type="")
    verification, runs = Verification(package, name, options, lambda *_: None, {}), 0
    if not modules_of(package, name):
        return runs
    for setting in verification.settings():
        verification.choose_blobs(setting)
        for code in (c for c in verification.codes if c.device == device):
            with contextlib.suppress(NoCode):
                verification.run_once(setting, code, dtype)
                runs += 1
    return runs

"""Fixtures of this folder."""

import sys

import pytest
import torch
from support import python_with_torch
from support.verify import QUICK, Outcome

from cuffi.caffe_layers.verify import processes
from cuffi.caffe_layers.verify.__main__ import main


@pytest.fixture(scope="session")
def crooked(shared_layers):
    """A folder with the layers of caffe_crooked, built with the core that make has compiled for the tree."""
    return shared_layers.build_layers("caffe_crooked")


@pytest.fixture
def verify_main(capfd):
    """The tool itself runs layers in processes of its own."""

    def run(*command: str) -> Outcome:
        if (
            torch.cuda.is_available()
        ):  # having asked, this process cannot fork, and the tool gets one of its own
            script = (
                f"import sys; from {main.__module__} import main; from {processes.__package__} import processes\n"
                f"processes.PATIENCE = {processes.PATIENCE}; sys.exit(main({list(command)}))"
            )
            done = python_with_torch.run([sys.executable, "-c", script])
            status, out, err = done.returncode, done.stdout, done.stderr
        else:
            status = main(list(command))
            out, err = capfd.readouterr()
        assert not err, err
        return Outcome(status, out)

    return run


@pytest.fixture
def verify(crooked, verify_main):
    def run(type_name: str, *options: str) -> Outcome:
        return verify_main(
            "--layers-dir", str(crooked), "--type", type_name, *QUICK, *options, "caffe_crooked"
        )

    return run

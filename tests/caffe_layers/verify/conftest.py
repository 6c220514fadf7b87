"""Fixtures of this folder."""

import pytest
from support.verify import QUICK, Outcome

from cuffi.caffe_layers.verify.__main__ import main


@pytest.fixture(scope="session")
def crooked(shared_layers):
    """A folder with the layers of caffe_crooked, built with the core that make has compiled for the tree."""
    return shared_layers.build_layers("caffe_crooked")


@pytest.fixture
def verify(crooked, capfd):
    """The tool itself runs layers in processes of its own."""

    def run(type_name: str, *options: str) -> Outcome:
        command = ["--layers-dir", str(crooked), "--type", type_name, *QUICK, *options, "caffe_crooked"]
        status = main(command)
        said = capfd.readouterr()
        assert not said.err, said.err
        return Outcome(status, said.out)

    return run

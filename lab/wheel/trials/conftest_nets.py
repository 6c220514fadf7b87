"""tests/conftest.py where no kernels are: what is built for a test is not there."""

import pytest
from support.gpu import needs_gpu

DEVICES = ["cpu"]
BUILT = ("cache", "fork", "kernels", "kernels_folder", "shared_layers", "stock", "workshop", "zoo")


def _nothing():
    pytest.skip("builds a library")


for _name in BUILT:
    globals()[f"_{_name}"] = pytest.fixture(_nothing, name=_name)


@pytest.fixture
def device():
    return "cpu"


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a GPU, which none of its parameters says")


def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if not needs_gpu(item)]

"""cuRAND's host API on the host: distributions by their own functions of scipy, the sequence by its seed and offset."""

import numpy as np
import pytest
from conftest import ROOT

from cuffi import run
from cuffi.judge import judge

stats = pytest.importorskip("scipy.stats")
PROGRAM = ROOT / "tests" / "fixtures" / "curand" / "program.cu"


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("curand")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run.main([str(PROGRAM)]) == 0
    types = {"uniform_double": "f8", "normal_double": "f8", "bits": "u4", "poisson": "u4"}
    return {file.name: np.fromfile(file, types.get(file.name, "f4")) for file in folder.iterdir()}


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("uniform", stats.uniform()),
        ("next", stats.uniform()),
        ("normal", stats.norm(2, 3)),
        ("lognormal", stats.lognorm(0.25, scale=np.exp(0.5))),
        ("uniform_double", stats.uniform()),
        ("normal_double", stats.norm(-1, 0.5)),
        ("bits", stats.uniform(0, 2.0**32)),
    ],
)
def test_distributions(numbers, name, of):
    assert len(numbers[name]) == 20000
    assert stats.kstest(numbers[name].astype(np.float64), of.cdf).pvalue > 1e-4
    halves = numbers[name][::2].astype(np.float64), numbers[name][1::2].astype(np.float64)
    assert abs(np.corrcoef(*halves)[0, 1]) < 0.05


def test_poisson(numbers):
    counts = np.bincount(np.minimum(numbers["poisson"], 12), minlength=13)
    wanted = stats.poisson(4.5).pmf(np.arange(12))
    assert stats.chisquare(counts, 20000 * np.append(wanted, 1 - wanted.sum())).pvalue > 1e-4


def test_the_sequence(numbers):
    """One seed gives one sequence; an offset skips its first numbers; a second call goes on. 0 is never given."""
    both = np.concatenate([numbers["uniform"], numbers["next"]])
    np.testing.assert_array_equal(numbers["again"], 2 * both[5:20005])
    assert both.min() > 0 and both.max() <= 1 and np.abs(numbers["uniform"] - numbers["next"]).max() > 0.5


def test_statuses_and_the_judge(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run.main([str(PROGRAM)]) == 0
    assert capfd.readouterr().out == "105 104\n"
    found = judge([PROGRAM])
    assert found["verdict"] == "ok", found

"""Kernels that are made to fool the prover: none is proved (all of them: `python -m lab.proving`)."""

import pytest
from proving.test_proof import proof_of

from lab.proving import fooling_kernels

ALL = fooling_kernels()
SOME = range(0, len(ALL), 12)


@pytest.mark.parametrize("number", SOME)
def test_none_is_proved(number, tmp_path):
    proof = proof_of(ALL[number], tmp_path)
    assert not proof.is_proved and proof.reasons, ALL[number]


def test_there_are_many_and_each_is_another_one():
    assert len(set(ALL)) == len(ALL) >= 150 and all("__global__" in one for one in ALL)

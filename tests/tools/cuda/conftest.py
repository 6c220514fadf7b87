"""Fixtures of this folder."""

import pytest
from support.rewriting import CASES


@pytest.fixture
def in_cases(monkeypatch):
    monkeypatch.chdir(CASES)

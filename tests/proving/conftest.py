"""Without z3 nothing is proved: these tests are left out, and the report says so."""

import importlib.util

HAS_Z3 = importlib.util.find_spec("z3") is not None
collect_ignore_glob = [] if HAS_Z3 else ["test_*.py"]


def pytest_report_header():
    return (
        [] if HAS_Z3 else ["tests/proving is left out: z3-solver is not installed (requirements/prove.txt)"]
    )

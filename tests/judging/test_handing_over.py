"""Flags, locks and barriers of the grid, volatile or atomic: right programs are not told, and each part is missed."""

from dataclasses import replace

import pytest
from support import handing_over

from cuffi.judging.findings import of_log
from cuffi.judging.limits import Limits
from cuffi.judging.programs import Program

MANY = 24  # kernels of a file


def told(kernels: list[handing_over.Program], tmp_path) -> set[str]:
    """The kernels in which the race finder found something, from the first thread or from the last."""
    names: set[str] = set()
    for number in range(0, len(kernels), MANY):
        some = kernels[number : number + MANY]
        file = tmp_path / f"k{number}.cu"
        file.write_text(handing_over.file_of(some))
        program = Program([file], [], [], None)
        for settings in ({}, {"CAFFE_RACES_BACKWARDS": "1"}):
            ran = program.run("races", tmp_path, replace(Limits(), seconds=100), **settings)
            assert ran.status == 0, ran.errors
            found, seen, _ = of_log(ran.log)
            assert seen == {one.name for one in some}
            names |= {one.kernel for one in found}
    return names


@pytest.mark.parametrize("every", [16, 1], ids=["some", "all"])
def test_right_programs_and_what_is_dropped(every, tmp_path):
    kernels = handing_over.programs(every)
    found = told(kernels, tmp_path)
    false = [f"{one.pattern}: {one.body}" for one in kernels if not one.dropped and one.name in found]
    missed = [
        f"{one.pattern}, without {one.dropped}" for one in kernels if one.dropped and one.name not in found
    ]
    assert not false, "\n".join(false)
    assert not missed, "\n".join(missed)
    assert every > 1 or sum(not one.dropped for one in kernels) >= 100

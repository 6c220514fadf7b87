"""make verify: the race finder's report."""

import pytest

from tools.cases.races import Race, Watch, parse


@pytest.mark.parametrize(
    "ran, races, said",
    [
        ({"a", "b"}, 0, "2 of 2 kernels ran, no race"),
        ({"a", "other"}, 1, "1 of 2 kernels ran, 1 race; not run: b"),
        (set(), 2, "0 of 2 kernels ran, 2 races; not run: a, b"),
        (set(), 0, "none of the layer's kernels ran on the host, so races were not checked"),
    ],
)
def test_a_summary_of_races(ran, races, said):
    assert Watch([None] * races, ran).summary(["a", "b"]) == said


def test_a_log_of_races():
    """It keeps the first race of each pair of lines, whichever of the two came first."""
    log = "\n".join(
        [
            "ran\tone_kernel",
            "race\t/no/lib.so\tone_kernel\twritten twice\tglobal\t0x10\t0x20\t5\t70\t64\t3\t8",
            "race\t/no/lib.so\tone_kernel\twritten twice\tglobal\t0x20\t0x10\t6\t71\t64\t4\t8",
            "race\t/no/lib.so\tone_kernel\twritten twice\tshared\t0x10\t0x30\t63\t64\t64\t-1\t4",
            "noise\tone",
        ]
    )
    found, kernels, left = parse(log)
    races = [one for one in found if isinstance(one, Race)]
    assert races == found and left == []
    assert kernels == {"one_kernel"} and [race.threads for race in races] == [
        ((0, 5), (1, 6)),
        ((0, 63), (1, 0)),
    ]
    assert [(race.element, race.bytes, race.space) for race in races] == [(3, 8, "global"), (-1, 4, "shared")]
    assert races[0].places == ("/no/lib.so+0x10", "/no/lib.so+0x20") and races[0].lines == ("?", "?")
    assert str(races[0]).startswith("race in kernel one_kernel: element 3 (8 bytes) is written twice")
    assert "a shared variable (4 bytes)" in str(Race(**vars(races[1])))

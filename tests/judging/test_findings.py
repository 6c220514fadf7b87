"""What a run's output says, and the gravest of it."""

import pytest

from cuffi.judging.findings import CLASSES, Finding, gravest, of_log, of_run, sampled
from cuffi.judging.limits import OWN, Ran


@pytest.mark.parametrize(
    "errors, kind, place",
    [
        (
            "==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1 at\n    #0 0x5 in k /s/k.cu:9\n",
            "bounds",
            "/s/k.cu:9",
        ),
        ("/s/k.cu:4:7: runtime error: index 64 out of bounds for type 'int [64]'\n", "bounds", "/s/k.cu:4"),
        ("AddressSanitizer: SEGV on unknown address 0x000000000010 (pc 0x5\n", "null", ""),
        ("x: k.cu:3: void k(): Assertion `a == b' failed.\n", "assertion", ""),
        ("/s/k.cu:4:7: runtime error: shift exponent 40 is too large\n", "undefined", "/s/k.cu:4"),
        ("threads of a block wait at different barriers, at line 3 and at line 5\n", "barrier", ""),
        ("terminate: std::bad_alloc\n", "incomplete", ""),
    ],
)
def test_texts(errors, kind, place):
    (found,) = of_run(Ran(1, "", errors), ["/s/k.cu"], 5)
    assert (found.kind, found.place) == (kind, place)


def test_ends():
    assert [f.kind for f in of_run(Ran(None, "", ""), [], 5)] == ["hang"]
    (limit,) = of_run(Ran(None, "", "", "", "memory"), [], 5)
    assert limit.kind == "incomplete" and "limit of memory" in limit.text
    assert [f.kind for f in of_run(Ran(-11, "", ""), [], 5)] == ["crash"]
    assert [f.kind for f in of_run(Ran(1, "", f"{OWN} case: k 5 1 -6\n"), [], 5)] == ["crash"]
    assert of_run(Ran(0, "", "warning\n"), [], 5) == []


def test_a_sample_is_no_verdict():
    hang, race = Finding("hang", "no end within 5 s"), Finding("race", "race in k")
    said = Ran(0, "", f"{OWN} sampled: 64 of 5000 blocks of k\n")
    (one,) = sampled([hang], said, 5)
    assert (one.kind, gravest([one])) == ("sampled", ("sampled", 3)) and "64 of 5000 blocks of k" in one.text
    assert gravest(sampled([hang, race], said, 5)) == ("race", 1)
    assert sampled([hang], Ran(None, "", said.errors), 5) == [hang], "it did not end, either"
    assert sampled([hang], Ran(0, "", "sampled: 64 of 5000 blocks of k\n"), 5) == [hang], (
        "the program said so itself"
    )


def test_a_log():
    log = (
        "ran\tk\nleft\tk\tmemory\t2048\nleft\tk\tblocks\t9\n"
        "told\t/no.so\tk\tfault\t0x10\t33\t32\tuses memory that is not there, at address (nil)\n"
        "told\t/no.so\tk\tunset\t0x20\t1\t32\treads shared memory that nothing has written\n"
    )
    found, ran, left = of_log(log)
    assert [f.kind for f in found] == ["null", "unset"] and ran == {"k"} and len(left) == 2
    assert "thread 1 of block 1" in found[0].text and found[0].kernel == "k"
    assert "2048 MB" in left[0] and "9 blocks were not watched" in left[1]


def test_the_gravest():
    assert gravest([]) == ("ok", 0)
    assert gravest([Finding("hang", ""), Finding("race", ""), Finding("unset", "")]) == ("race", 1)
    assert {gravest([Finding(kind, "")])[1] for kind in CLASSES[-4:]} == {3}


def test_a_warning_is_no_mistake():
    allowed = Finding("barrier", "", is_warning=True)
    assert gravest([allowed]) == ("barrier", 0)
    assert gravest([allowed, Finding("hang", "")]) == ("hang", 3)
    assert gravest([allowed, Finding("unset", "")]) == ("unset", 1)


def test_what_depends_on_invented_arguments():
    """A count of 0, indices that repeat, and memory whose size nobody said give no verdict."""
    race = "race\t/no.so\tk\twritten twice\tglobal\t{}\t0x9\t0\t1\t64\t3\t4\n"
    log = OWN + " begin: {} {} {} 0\n"
    repeated = log.format(61, 0, 1) + race.format("0x8") + log.format(61, 2, 1) + race.format("0x8")
    (one,) = of_log(repeated)[0]
    assert one.kind == "incomplete" and "this would be race" in one.text
    assert [f.kind for f in of_log(repeated + log.format(61, 1, 1) + race.format("0x8"))[0]] == ["race"]
    assert [f.kind for f in of_log(log.format(61, 2, 0) + race.format("0x8"))[0]] == ["race"]
    assert [f.kind for f in of_log(log.format(0, 0, 0) + race.format("0x8"))[0]] == ["incomplete"]
    fault = "told\t/no.so\tk\tfault\t0x10\t3\t32\tuses memory that is not there, at address (nil)\n"
    assert [f.kind for f in of_log(log.format(61, 1, 0) + fault)[0]] == ["incomplete"]
    errors = OWN + " begin: 61 {} 1 0\n/s/k.cu:4:7: runtime error: {}\n"
    index = "index 64 out of bounds for type 'int [64]'"
    kinds = {0: "bounds", 1: "incomplete"}
    for pattern, kind in kinds.items():
        (one,) = of_run(Ran(1, "", errors.format(pattern, index)), ["/s/k.cu"], 5)
        assert one.kind == kind
    divides = Ran(1, "", errors.format(0, "division by zero"))
    assert of_run(divides, ["/s/k.cu"], 5)[0].kind == "incomplete"
    # With promises all is certain but what indices do; of some arrays, what lies behind these.
    sized = "==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1\n"
    for promised, text, kind in (
        (0, sized, "incomplete"),
        (1, sized, "bounds"),
        (2, "/s/k.cu:4:7: runtime error: shift\n", "undefined"),
    ):
        begun = f"{OWN} begin: 0 0 0 {promised}\n" if promised else f"{OWN} begin: 61 0 0 0\n"
        assert [f.kind for f in of_run(Ran(1, "", begun + text), ["/s/k.cu"], 5)] == [kind]
    (unmet,) = of_run(Ran(0, "", f"{OWN} begin: 0 0 0 2\n{OWN} unmet: k\n"), [], 5)
    assert unmet.kind == "incomplete" and "as k requires" in unmet.text
    # What the program itself prints is no line of the judge's.
    printed = errors.replace(OWN, "JUDGE").format(1, index)
    assert of_run(Ran(1, "", printed), ["/s/k.cu"], 5)[0].kind == "bounds"

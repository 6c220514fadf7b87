"""make fuzz: the random calls."""

import hypothesis
import torch

from lab.fuzz.calls import Subjects, changed


def drawn(strategy, seed: int) -> list[str]:
    """The drawn call as text; for a changed argument, the description of the change."""
    made = []
    test = hypothesis.given(strategy)(
        lambda value: made.append(str(value[1] if type(value) is tuple else value))
    )
    hypothesis.settings(max_examples=60, database=None, deadline=None)(hypothesis.seed(seed)(test))()
    return made


def test_the_same_seed_makes_the_same_calls():
    subject = Subjects("cuffi", "round")
    assert subject.operators, "no operator is called through torch.ops"
    one = drawn(subject.calls(), 3)
    assert one == drawn(subject.calls(), 3) != drawn(subject.calls(), 4)
    assert len(set(one)) > 20
    through_torch = sum(text.startswith("torch.ops.") for text in one)
    assert 0 < through_torch < len(one) / 2  # a quarter, and the functions of the cases


def test_arguments_are_changed_in_every_way():
    made = drawn(changed(torch.ones(2, 3, 4, 5), "x"), 5)
    made += drawn(changed(torch.ones(2, 3, 4, 5), "x"), 6)
    said = " ".join(made)
    assert all(word in said for word in ("transposed", "int", "sparse", "None", "float16"))


def test_subjects_reach_backward_operators():
    names = {str(op) for op, _ in Subjects("cuffi", "sigmoid").operators}
    assert any("d_sigmoid" in name or "backward" in name for name in names), names

"""lab.launches.fuzz: random launches, by their launchers and as plain C++."""

from lab.launches.fuzz import Outcome, compare
from tools.new_layer.host_code import Translation


def test_launchers_launch_what_the_host_code_launches(tmp_path):
    outcome = Outcome()
    compare(60, 8, tmp_path, outcome)
    assert not outcome.wrong, "\n".join(outcome.wrong)
    assert outcome.cases - outcome.asking >= 15  # whole launches that are computed


def test_a_name_that_means_something_else_is_found(tmp_path, monkeypatch):
    """As launchers were made before: every text of a launch that is an argument was that argument."""

    def by_text(self, text):
        return self.given[text]("") if self.given.get(text) else honest(self, text)

    honest = Translation.of
    monkeypatch.setattr(Translation, "of", by_text)
    outcome = Outcome()
    compare(60, 8, tmp_path, outcome)
    assert outcome.wrong

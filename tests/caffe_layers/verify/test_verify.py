"""make verify: layers with a mistake are caught, right ones pass (tests/fixtures/caffe_crooked)."""

import importlib
import re
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from support.typed import not_none
from support.verify import QUICK, Outcome
from support.workshop import ROOT, SharedLayers

from cuffi.caffe_layers.verify.gradient import COARSE, Checked, GradientCheck
from cuffi.caffe_layers.verify.table import (
    RIGHT,
    STATUS_NOT_RUN,
    STATUS_RIGHT,
    STATUS_WRONG,
    UNSURE,
    WRONG,
    Row,
    closing,
)
from cuffi.caffe_layers.verify.verify_inputs import (
    Setting,
)
from cuffi.runtime.cases import load_package


def test_right(verify):
    found = verify("SquareRight")
    assert found.status == 0, found.text
    assert found.verdicts == {"right"}
    assert "its own CPU code" in found.table and "its kernels, host" in found.table
    assert ("GPU" in found.table) == torch.cuda.is_available()
    assert "guessed: SquareRight on 2,3,6,5" in found.text


@pytest.mark.parametrize("type_name", ["SquareHalved", "SquareDeaf"])
def test_wrong_everywhere(verify, type_name):
    found = verify(type_name)
    assert found.status == 1 and found.verdicts == {"WRONG"}, found.text
    assert "Backward says" in found.text and "bottom 0[" in found.text
    assert "adds to a diff" not in found.text


def test_phase(verify):
    """Its Backward is wrong only in training."""
    found = verify("SquareHalved", "--param", "phase: TEST")
    assert found.status == 0 and found.verdicts == {"right"}, found.text


def test_random_numbers_of_the_c_library(verify):
    """Its CPU code and its kernels draw differently, by rand(). That is no mistake, and is said."""
    found = verify("SquareOfChance")
    assert "WRONG" not in found.text and "random" in found.table, found.text
    assert "rand()" in found.text and found.status != 1, found.text
    assert "rand()" not in verify("SquareRight").text


def test_a_member_that_nothing_sets(verify):
    found = verify("SquareUnset")
    assert found.status == 0 and found.verdicts == {"right"}, found.text
    said = "reads a member that nothing has set: in other memory than zeros its result is another one."
    assert said in found.text and "does not set longest_, unused_\n" in found.text, found.text
    assert "nothing has set" not in verify("SquareRight").text


def test_wrong_kernels_alone(verify):
    """They are wrong by half a percent."""
    found = verify("SquareTornBack")
    assert found.status == 1 and found.verdicts == {"right", "WRONG"}, found.text
    assert all(
        ("WRONG" in line) == ("kernels" in line)
        for line in found.table.splitlines()
        if "double" in line or "float" in line
    )


def test_two_ways_that_differ(verify):
    """Each has the right gradient of its own forward."""
    found = verify("SquareTorn")
    assert found.status == 1 and found.verdicts == {"right", "WRONG"}, found.text
    assert "forward differs" in found.text


def test_a_layer_in_place(verify):
    found = verify("SquareInPlace")
    assert found.status == 0 and found.verdicts == {"right"}, found.text
    assert "guessed: SquareInPlace on 2,3,6,5, in place" in found.text


def test_wrong_parameter_diff(verify):
    found = verify("SquareWithBlob")
    assert found.status == 1 and found.verdicts == {"WRONG"}, found.text
    assert "blob 0[0]" in found.text and "bottom 0[" not in found.text


def test_no_gradient_is_not_a_right_one(verify):
    found = verify("SquareOneWay")
    assert found.status == 0 and found.verdicts == {"no gradient"}, found.text


def test_kernels_alone(verify):
    found = verify("SquareByKernels")
    assert found.status == 0 and found.verdicts == {"no code", "right"}, found.text


def test_labels_are_left_out(verify):
    """The layer refuses a gradient for them; the other bottom is checked."""
    found = verify("SquareOfLabelled", "--shapes", "3,4 3,4")
    assert found.status == 0 and found.verdicts == {"right"}, found.text
    assert "no gradient for bottom 1" in found.text and "cannot backpropagate to labels" in found.text


def test_bottom_that_is_left_out(verify):
    """The prototxt leaves it out, so the layer is not asked for its gradient."""
    propagate_down = "propagate_down: true propagate_down: false"
    found = verify("SquareOfLabelled", "--shapes", "3,4 3,4", "--param", propagate_down)
    assert found.status == 0 and found.verdicts == {"right"}, found.text
    assert "cannot backpropagate" not in found.text


def test_bottom_that_gives_a_size(verify):
    """Backward does not write its diff. Its gradient is 0, and so are the differences."""
    found = verify("SquareSized", "--shapes", "3,4 3,4")
    assert found.status == 0 and found.verdicts == {"right"}, found.text
    told = re.sub(r"[│\s]+", " ", found.table)
    assert "Backward writes no diff for bottom 1" in told and "adds to a diff" not in found.text


def test_bottom_whose_gradient_is_forgotten(verify):
    """A small gradient counts, too: where differences are not 0, having none is wrong."""
    found = verify("SquareLeaving", "--shapes", "3,4 3,4")
    assert found.status == 1 and found.verdicts == {"WRONG"}, found.text
    assert (
        "leaves the diff of bottom 1 as it was" in found.text and "Backward says 0, differences" in found.text
    )
    assert "bottom 0[" not in found.text


def test_steps_have_no_gradient(verify):
    """Backward writes nothing, and all differences are 0: there is no gradient to judge."""
    found = verify("SquareInSteps", "--shapes", "3,4")
    assert found.status == 0 and found.verdicts == {"no gradient"}, found.text
    assert "Backward writes no diff, and" in re.sub(r"[│\s]+", " ", found.table)


@pytest.mark.parametrize("mode", ["cpu", "gpu"])
def test_a_diff_that_is_not_written_is_zeros_to_torch(crooked, mode):
    """It does not have the memory's old values."""
    module = importlib.import_module(f"{load_package(crooked)}.caffe_crooked").SquareSized()
    module.mode = mode
    for _ in range(4):
        x, size = (torch.randn(8, 8, requires_grad=True) for _ in range(2))
        y = module(x, size)
        torch.full_like(size, 7)  # what the memory to come may hold
        y.sum().backward()
        torch.testing.assert_close(x.grad, 2 * x.detach())
        assert torch.equal(not_none(size.grad), torch.zeros(8, 8))


def test_kink(verify):
    """|x|, with values as near to 0 as the steps are wide."""
    found = verify("SquareOfSize", "--shapes", "40,40")
    assert found.status == 0 and found.verdicts == {"right"}, found.text


def test_rounded_to_float(verify):
    found = verify("SquareInFloat")
    assert found.status == 0 and found.verdicts == {"right"}, found.text
    assert "partly in float" in re.sub(r"[│\s]+", " ", found.table)


def test_numbers_that_are_given(verify):
    """Right only for numbers in (0, 1)."""
    assert verify("SquareOfShares", "--shapes", "2,3:prob").verdicts == {"right"}
    assert verify("SquareOfShares", "--shapes", "2,3").verdicts == {"WRONG"}


def test_parameters_that_are_asked_for(verify):
    """The message has the failed CHECK, and how to give parameters."""
    found = verify("SquareOfOutputs")
    told = re.sub(r"\s+", " ", found.text)
    assert found.status == STATUS_NOT_RUN and "num_output" in told and "PARAM='" in told, found.text
    given = "inner_product_param { num_output: 2 } pooling_param { kernel_size: 2 }"
    assert verify("SquareOfOutputs", "--param", given).verdicts == {"right"}


def test_shapes_it_does_not_take(verify):
    found = verify("SquareOfLots")
    assert found.status == 3 and found.verdicts == {"FAILED"}, found.text
    told = re.sub(r"\s+", " ", found.text)
    assert "(10 vs. 0) channels of the famous paper" in told and "SHAPES='" in told
    given = verify("SquareOfLots", "--shapes", "2,17")
    assert given.status == 0 and given.verdicts == {"right"}, given.text


def test_a_result_that_changes_from_call_to_call(verify):
    found = verify("SquareOfTurns")
    assert found.status == 0 and found.verdicts == {"no gradient"}, found.text
    assert "a second call gives another result" in re.sub(r"[│\s]+", " ", found.table)


def test_a_guess_that_gives_no_numbers(verify):
    """Forward returns NaN on more than two axes, which the guess has."""
    found = verify("SquareOfFew")
    assert found.status == 0 and found.verdicts == {"right"}, found.text
    assert "guessed: SquareOfFew on 5,4" in found.text


def test_a_gradient_that_is_no_number(verify):
    found = verify("SquareRootless")
    assert found.status == 1 and "WRONG" in found.verdicts, found.text
    assert re.search(r"Backward says -?nan", found.text)


@pytest.mark.parametrize("type_name", ["SquareOfRois", "SquareOfBoxes"])
def test_regions_are_guessed(verify, type_name):
    """A layer named after regions gets them at once, others when they read past the end of other guesses."""
    found = verify(type_name)
    assert found.status == 0 and found.verdicts == {"right"}, found.text
    assert f"guessed: {type_name} on 2,3,6,5 5,5:roi" in found.text


def test_wrong_on_a_guess_of_several_kinds(capsys):
    """No verdict, and the message says so; with one kind of bottom there is a verdict."""
    rows = [Row("A", "c", "float", verdict=RIGHT), Row("A", "c", "double", verdict=UNSURE)]
    assert closing("a", rows, []) == STATUS_NOT_RUN and "guessed" in capsys.readouterr().out
    assert closing("a", [*rows, Row("A", "c", "float", verdict=WRONG)], []) == STATUS_WRONG
    image, labels = torch.zeros(2, 3), torch.zeros(2)
    module: Any = None  # it is not asked
    assert Setting("a", module, [image, labels], guessed=True).is_doubtful
    assert Setting("a", module, [image, image], guessed=True).is_doubtful
    assert not Setting("a", module, [image], guessed=True).is_doubtful
    assert not Setting("a", module, [image, labels]).is_doubtful


def test_races(shared_folder, verify):
    """Right when its threads run in order, as they do on the host."""
    layers = SharedLayers(shared_folder / "races", "NVCC=", "SANITIZE=races")
    folder = str(layers.build_layers("caffe_crooked"))
    found = verify("SquareScatters", "--races", folder)
    assert found.status == 1 and "race in kernel SquareScatter: element" in found.text, found.text
    assert "square_layer.cu:" in found.text and "bottom_diff[i + 1] = 0;" in found.text
    assert "race finder: 2 of 3 kernels ran, 1 race; not run: SquareBackward" in found.text, found.text
    found = verify("SquareByKernels", "--races", folder)
    assert found.status == 0 and "race in" not in found.text, found.text
    assert "2 of 3 kernels ran, no race; not run: SquareScatter" in found.text, found.text


def test_unknown_shapes_and_fields(verify):
    # A mistake in what was typed is no finding about the layer.
    sizes = "SHAPES: 2,x: expected sizes, as in 2,3,6,5 or 2,1,1,1:label or 5,5:roi\n"
    assert verify("SquareRight", "--shapes", "2,x") == Outcome(2, sizes)
    kind = "SHAPES: 2,3:lable: expected one of label, roi, prob after the colon, got 'lable'\n"
    assert verify("SquareRight", "--shapes", "2,3 2,3:lable") == Outcome(2, kind)
    assert verify("SquareRight", "--shapes", "2,3:prob").status == 0
    found = verify("SquareRight", "--param", "no_such_param { a: 1 }")
    assert found.status == 3 and "no_such_param" in found.text


@pytest.mark.parametrize("layer", ["normalize", "smooth_l1_loss", "psroi_pooling"])
def test_own_layers(layer, verify_main):
    """Their cases give the inputs. Only built layers run. (Correlation takes minutes on the host.)"""
    if not (ROOT / "cuffi" / "caffe_layers" / "layers" / layer / "_host.abi3.so").exists():
        pytest.skip(f"{layer} is not built")
    found = verify_main(*QUICK, layer)
    assert found.status == STATUS_RIGHT and f"{layer}: gradient right in" in found.text


def test_an_output_is_named_by_its_top():
    check: Any = SimpleNamespace(shapes=[torch.Size([2]), torch.Size([]), torch.Size([2, 3])])
    named = [GradientCheck.output_name(check, j) for j in (0, 1, 2, 3, 8)]
    assert named == ["top 0[0]", "top 0[1]", "top 1[]", "top 2[0, 0]", "top 2[1, 2]"]
    with pytest.raises(IndexError):
        GradientCheck.output_name(check, 9)


@pytest.mark.parametrize(
    ("errors", "wanted"),
    [
        # Each attempt's, at a threshold of 0.1: the first that is right in all places ends it; else the best one tells.
        ([(0.4, 0.5), (0.0, 0.9)], (0.5, 2, False)),
        ([(0.0, 0.9), (0.4, 0.5)], (0.5, 2, False)),
        ([(0.0, 0.9), (0.05, 0.1), (0.0, 0.0)], (0.1, 0, False)),
        ([(0.0, 0.9), (0.0, 0.9), (0.0, 0.05)], (0.05, 0, True)),
        ([(0.5, 0.5, 0.5, 0.5)], (0.5, 4, False)),
    ],
)
def test_the_attempt_that_is_told(errors, wanted):
    steps = 0.1, 0.05, COARSE[0]
    check: Any = GradientCheck.__new__(GradientCheck)
    check.dtype, check.attempts = (
        torch.float64,
        lambda: iter([(of, s, 0.1) for of, s in zip(errors, steps, strict=False)]),
    )
    computed = torch.zeros(len(errors[0]), dtype=torch.float64)
    check.unwritten = set()
    check.estimated = lambda of, *_: torch.tensor(of, dtype=torch.float64)
    noted = []
    check.note = lambda found, *what: (noted.append(what), found.wrong.append(what))
    found: Any = Checked()
    check.check_input(found, 2, 3, computed)
    assert (found.error, found.wrong_count, found.coarse) == wanted
    assert len(noted) == min(3, found.wrong_count) and all(row[:2] == (2, 3) for row in noted)

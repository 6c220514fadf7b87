"""The inputs of make verify: small cases, and guessed shapes and values."""

from types import SimpleNamespace

import pytest
import torch
from support.typed import not_none

from cuffi.caffe_layers.verify import verify_inputs
from cuffi.caffe_layers.verify.verify_inputs import (
    DATA,
    FLAT,
    LABEL,
    PROBABILITIES,
    REGIONS,
    SQUARE,
    USUAL,
    Setting,
    Shape,
    called_after,
    candidates,
    counts,
    values_of,
)


def values(text: str, first: Shape = USUAL) -> torch.Tensor:
    return Shape.parse(text).values(torch.Generator().manual_seed(5), first)


def test_labels_are_classes_of_the_first_bottom():
    assert values("200:label").unique().tolist() == [0, 1, 2] and values("200:label").dtype == torch.float64
    assert values("200:label", Shape((9,))).unique().tolist() == [0, 1]
    assert values("200:label", Shape((9, 0))).unique().tolist() == [0]


def test_regions_lie_within_the_first_bottom():
    image, x1, y1, x2, y2 = values("500,5:roi").unbind(1)
    assert image.unique().tolist() == [0, 1]
    assert (x1 <= x2).all() and (y1 <= y2).all() and x1.min() == y1.min() == 0
    assert x2.max() == 4 and y2.max() == 5 and (x2 % 1 == 0).all()
    assert values("4,5,1,1:roi").shape == (4, 5, 1, 1)
    _, _, _, x2, y2 = values("500,5:roi", FLAT).unbind(1)
    assert x2.max() == y2.max() == 7


def test_numbers():
    assert values("500").min() < -1 and values("500").dtype == torch.float64
    shares = values("500:prob")
    assert 0 < shares.min() < 0.3 and 0.7 < shares.max() < 1


def test_shapes_as_text():
    for text in ("2,3,6,5", "2,1,1,1:label", "5,5:roi", "3:prob", ""):
        assert str(Shape.parse(text)) == text
    assert Shape.parse("2,5:roi").kind == REGIONS and Shape.parse("3:prob") == Shape((3,), PROBABILITIES)
    for text, said in (("2:x", "after the colon"), ("2,y", "expected sizes"), ("5,4:roi", "five numbers")):
        with pytest.raises(ValueError, match=f"SHAPES: {text}: .*{said}"):
            Shape.parse(text)


def test_guesses_are_for_that_many_bottoms_the_likeliest_first():
    assert list(candidates(0)) == [[]]
    for count in (1, 2, 3):
        for kind in (DATA, REGIONS):
            found = list(candidates(count, kind))
            assert {len(shapes) for shapes in found} == {count}
            assert (
                [USUAL] * count in found
                and [SQUARE] * count in found
                and [Shape((1, 4, 1, 4))] * count in found
            )
    assert next(candidates(2)) == [USUAL] * 2
    last = [[Shape(sizes)] for sizes in ((1, 1), (1, 4, 1, 4), (2, 3, 4), (2, 3, 4, 3, 4))]
    assert list(candidates(1)) == [[USUAL], [SQUARE], [FLAT], *last]
    pairs, threes = list(candidates(2)), list(candidates(3))
    assert [USUAL, Shape((2,), LABEL)] in pairs and [FLAT, Shape((5, 1), LABEL)] in pairs
    assert [SQUARE, Shape((2, 1, 6, 6))] in pairs and [FLAT, Shape((5, 4))] in pairs
    assert not any(b.kind == REGIONS for a, b in pairs if a == FLAT)
    assert [USUAL, USUAL, Shape((2,), LABEL)] in threes and [USUAL, *[Shape((3,))] * 2] in threes
    assert [shapes[-1].kind for shapes in candidates(2, REGIONS)][:6] == [REGIONS] * 6
    assert [USUAL, Shape((5, 5), REGIONS), USUAL] in list(candidates(3, REGIONS))[:12]
    assert list(candidates(1, REGIONS)) == list(candidates(1))


class Function:
    def bottoms_and_blobs(self, given):
        return given[:-1], {"blob0": given[-1]}

    def make(self):
        return torch.nn.Identity()


class SomeCase:
    name, has_modes, kinks, gradient, function = "case", True, None, "all", Function()

    def __init__(self, **sizes):
        self.inputs = {
            label: (lambda count, size: lambda draw: [torch.zeros(size)] * count)(*said)
            for label, said in sizes.items()
        }


def settings(*cases) -> list[Setting]:
    return list(verify_inputs.settings_of_cases(cases, lambda: None, lambda given, kinks: given))


def test_of_a_case_the_first_small_inputs_of_each_number_of_bottoms_are_taken():
    found = settings(SomeCase(large=(2, 800), first=(2, 10), second=(2, 9), more=(3, 500), most=(3, 501)))
    assert sorted(s.name for s in found) == ["case, first", "case, more"]
    (first,) = [s for s in found if s.name == "case, first"]
    assert (
        len(first.bottoms) == len(not_none(first.blobs)) == 1 and first.smooth == [True] and not first.guessed
    )
    (only,) = settings(SomeCase(large=(2, 900), less=(2, 800), larger=(2, 1000)))
    assert only.name == "case, less"  # none is small


def test_what_is_no_caffe_layers_case_or_has_no_gradient():
    case = SomeCase(a=(2, 3))
    case.gradient = "none"
    assert settings(case)[0].smooth == [False]
    case.has_modes = False
    assert settings(case) == []


def test_regions_of_another_size():
    """For example rotated ones of six numbers: the meaning of the sixth is unknown."""
    with pytest.raises(ValueError, match="SHAPES: 4,6:roi: a region is five numbers, image, x1, y1, x2, y2"):
        Shape.parse("4,6:roi")
    assert Shape.parse("4,5,1,1:roi").sizes == (4, 5, 1, 1)


@pytest.mark.parametrize(
    ("count", "type_name", "kind"),
    [
        (2, "PSROIPooling", REGIONS),
        (2, "Eltwise", DATA),
        (1, "RoiAlign", DATA),
    ],
)
def test_what_a_layer_is_called_after_comes_first(count, type_name, kind):
    assert next(candidates(count, called_after(type_name)))[-1].kind == kind


@pytest.mark.parametrize(
    ("count", "first", "guesses"),
    [
        (0, DATA, 1),
        (0, REGIONS, 1),
        (1, DATA, 7),
        (1, REGIONS, 7),
        (2, DATA, 36),
        (2, REGIONS, 42),
        (3, DATA, 65),
        (3, REGIONS, 77),
    ],
)
def test_shapes_that_are_guessed(count, first, guesses):
    """All bottoms of one kind, then the last one, or all but the first, of another kind."""
    found = [" ".join(map(str, shapes)) for shapes in candidates(count, first)]
    assert len(found) == guesses and all(len(shapes.split()) == count for shapes in found)
    among = {
        1: ["2,3,6,5", "5,4", "1,1", "1,4,1,4"],
        2: [
            "2,4,6,6 2:label",
            "2,3,6,5 2,1,6,5:label",
            "2,3,6,5 2,1,6,5",
            "5,4 5,1:label",
            "5,4 4",
            "2,4,6,6 2,4",
        ],
        3: ["2,3,6,5 2,3,6,5 2,1,1,1:label", "2,3,6,5 5,5:roi 5,5:roi", "5,4 5:label 5:label", "5,4 5,4 1"],
    }
    assert set(among.get(count, [])) <= set(found)
    told = {2: "2,18,9,9 5,5,1,1:roi", 3: "2,18,9,9 5,5:roi 2,18,9,9"}.get(count)
    assert (told in found) == (first == REGIONS and told is not None)


@pytest.mark.parametrize(
    ("exact", "least", "most", "wanted"),
    [(2, 1, 5, [2]), (0, -1, -1, [0]), (-1, -1, -1, [1, 2]), (-1, 0, -1, [1, 2]), (-1, 2, -1, [2]), (-1, 3, 4, [3, 4]),
     (-1, 2, 9, [2, 3, 4, 5]), (-1, -1, 1, [1])],
)  # fmt: skip
def test_numbers_of_bottoms_that_are_tried(exact, least, most, wanted):
    facts = dict(exact_num_bottom_blobs=exact, min_bottom_blobs=least, max_bottom_blobs=most)
    assert counts(SimpleNamespace(**facts)) == wanted


def test_values_are_what_their_kind_says():
    images = Shape((3, 4, 7, 9))
    labels, regions, shares, flat = (
        Shape.parse(t) for t in ("500:label", "300,5:roi", "50:prob", "300,5,1,1:roi")
    )
    drawn = values_of([images, labels, regions, shares, flat])
    assert [tuple(v.shape) for v in drawn] == [s.sizes for s in (images, labels, regions, shares, flat)]
    assert drawn[1].unique().tolist() == [0, 1, 2, 3] and values_of([Shape((4,)), labels])[
        1
    ].unique().tolist() == [0, 1]
    assert drawn[3].min() > 0 and drawn[3].max() < 1 and drawn[0].min() < 0
    for found in (drawn[2], drawn[4].view(300, 5)):
        image, x1, y1, x2, y2 = found.T
        assert image.unique().tolist() == [0, 1, 2] and (x1 <= x2).all() and (y1 <= y2).all()
        assert (x1.min(), x2.max(), y1.min(), y2.max()) == (0, 8, 0, 6)
    of_flat = values_of([Shape((3, 4)), regions])[1]
    assert of_flat[:, 1:].max() == 7 and of_flat[:, 0].max() == 2
    assert torch.equal(values_of([images])[0], drawn[0])

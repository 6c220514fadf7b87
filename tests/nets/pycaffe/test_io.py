"""caffe.io, compared with the formulas, pixel by pixel."""

import numpy as np
import pytest
from support.pycaffe import image

from cuffi import CaffeValueError, caffe
from cuffi.caffe import io

pytest.importorskip("scipy")


def bilinear(plane: np.ndarray, size, as_area: bool) -> np.ndarray:
    """A plane by the formula: pixels as areas with zeros outside, or as points with aligned corners."""
    out = np.zeros(size)
    for y, x in np.ndindex(*size):
        at = [
            (i + 0.5) * old / new - 0.5 if as_area else i * (old - 1) / (new - 1)
            for i, old, new in zip((y, x), plane.shape, size, strict=True)
        ]
        for row, column in np.ndindex(2, 2):
            place = [int(np.floor(a)) + d for a, d in zip(at, (row, column), strict=True)]
            weight = np.prod([1 - abs(a - p) for a, p in zip(at, place, strict=True)])
            if all(0 <= p < n for p, n in zip(place, plane.shape, strict=True)):
                out[y, x] += weight * plane[tuple(place)]
    return out


@pytest.mark.parametrize("size", [(4, 9), (12, 5)])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_resize_image_is_bilinear(size, channels):
    im = image(6, 7, channels)
    found = io.resize_image(im, size)
    low, high = im.min(), im.max()
    for k in range(channels):
        if channels == 4:
            expected = bilinear(im[..., k], size, as_area=False)
        else:  # zeros outside are those of the scaled image
            expected = bilinear((im[..., k] - low) / (high - low), size, as_area=True) * (high - low) + low
        np.testing.assert_allclose(found[..., k], expected, atol=1e-6)
    assert found.dtype == np.float32
    assert (io.resize_image(np.full((2, 2, 3), 5.0), (3, 3)) == 5).all()


def test_images_are_loaded_in_the_range_of_one(tmp_path):
    from PIL import Image

    values = np.arange(24, dtype=np.uint8).reshape(4, 2, 3) * 10
    Image.fromarray(values).save(tmp_path / "a.png")
    np.testing.assert_allclose(io.load_image(str(tmp_path / "a.png")), values / 255, atol=1e-7)
    assert io.load_image(str(tmp_path / "a.png"), color=False).shape == (4, 2, 1)


def test_the_transformer_does_its_steps_in_caffe_s_order_and_back():
    t = io.Transformer({"data": (1, 3, 5, 6)})
    mean = np.array([1.0, 2.0, 3.0])
    t.set_transpose("data", (2, 0, 1))
    t.set_channel_swap("data", (2, 1, 0))
    t.set_raw_scale("data", 255)
    t.set_mean("data", mean)
    t.set_input_scale("data", 0.5)
    im = image(5, 6, 3)
    found = t.preprocess("data", im)
    for k, y, x in np.ndindex(3, 5, 6):
        assert found[k, y, x] == pytest.approx((im[y, x, 2 - k] * 255 - mean[k]) * 0.5, rel=1e-5)
    np.testing.assert_allclose(t.deprocess("data", found[None]), im, atol=1e-6)
    assert t.preprocess("data", image(9, 9, 3)).shape == (3, 5, 6)
    for call, said in (
        (lambda: t.set_mean("data", np.zeros(4)), "Mean channels"),
        (lambda: t.set_transpose("data", (0, 1)), "Transpose order"),
        (lambda: t.set_raw_scale("image", 1), "image is not one of the net inputs: data"),
    ):
        with pytest.raises(CaffeValueError, match=said):
            call()


def test_oversample_takes_corners_and_centre_and_their_mirrors():
    im = image(6, 8, 3)
    crops = io.oversample([im], (4, 4))
    places = [(0, 0), (0, 4), (2, 0), (2, 4), (1, 2)]
    for i, (y, x) in enumerate(places):
        np.testing.assert_array_equal(crops[i], im[y : y + 4, x : x + 4])
        np.testing.assert_array_equal(crops[i + 5], im[y : y + 4, x : x + 4][:, ::-1])


def test_blobs_and_datums_go_to_protobuf_and_back():
    array = image(1, 2, 3, 4)
    blob = io.array_to_blobproto(array, 2 * array)
    np.testing.assert_array_equal(io.blobproto_to_array(blob), array)
    np.testing.assert_array_equal(io.blobproto_to_array(blob, return_diff=True), 2 * array)
    old = caffe.proto.caffe_pb2.BlobProto(num=1, channels=1, height=1, width=2, data=[3, 4])
    assert io.blobproto_to_array(old).shape == (1, 1, 1, 2)
    text = io.arraylist_to_blobprotovector_str([array, array[0]])
    assert [a.shape for a in io.blobprotovector_str_to_arraylist(text)] == [(1, 2, 3, 4), (2, 3, 4)]
    for values in (array[0], np.arange(24, dtype=np.uint8).reshape(2, 3, 4)):
        datum = io.array_to_datum(values, 7)
        np.testing.assert_array_equal(io.datum_to_array(datum), values)
        assert datum.label == 7

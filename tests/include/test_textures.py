"""Textures on the host: the numbers of an H200 for objects, and references beside objects."""

from collections.abc import Iterator

import numpy as np
import pytest
from conftest import ROOT

from cuffi import run
from cuffi.judge import judge
from tools.cuda.names import TEXTURES

FIXTURES = ROOT / "tests" / "fixtures" / "textures"


def numbers(names: str, values: bytes) -> Iterator[tuple[str, np.ndarray]]:
    at = 0
    for line in names.splitlines():
        name, count = line.rsplit(" ", 1)
        yield name, np.frombuffer(values, np.float32, int(count), at)
        at += 4 * int(count)
    assert at == len(values)


@pytest.fixture(scope="module")
def fetched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("textures")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run.main([str(FIXTURES / "fetch.cu")]) == 0
    return (folder / "fetch.bin").read_bytes()


def test_the_numbers_of_a_gpu(fetched):
    """Each address rule with each filter; coordinates beyond both ends, a little beside texels, infinite."""
    answers = FIXTURES / "answers"
    names = (answers / "fetch.txt").read_text()
    ours, gpus = (dict(numbers(names, values)) for values in (fetched, (answers / "fetch.bin").read_bytes()))
    assert len(gpus) == 127
    for name, wanted in gpus.items():
        # A filter's sum of fractions has 16 bits on a GPU; in three dimensions its weights round otherwise.
        is_filtered = " linear " in name
        most = (
            200 / 256
            if is_filtered and name.startswith("3d")
            else 2.0**-16 * ("as-float" in name and is_filtered)
        )
        difference = np.abs(ours[name].astype(np.float64) - wanted)
        assert difference.max() <= most, (name, difference.max())


def test_references_beside_objects(capfd):
    assert run.main([str(FIXTURES / "references.cu")]) == 0
    assert capfd.readouterr().out.startswith("0 wrong, 254.9")


def test_the_judge(tmp_path):
    """An object is no memory of the host's own; a race through a texture, and what nobody wrote, are told."""
    assert judge([FIXTURES / "references.cu"])["verdict"] == "ok"
    assert judge([FIXTURES / "neighbours.cu"])["verdict"] == "race"
    text = (FIXTURES / "neighbours.cu").read_text()
    unset = text.replace("cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);", "")
    (tmp_path / "unset.cu").write_text(unset)
    assert "unset" in {one["kind"] for one in judge([tmp_path / "unset.cu"])["findings"]}


def test_what_is_refused():
    refused = [
        "tex2DLayered",
        "tex2DLod",
        "tex2DGrad",
        "tex2Dgather",
        "texCubemap",
        "surf2Dread",
        "surf1Dwrite",
    ]
    assert all(TEXTURES.fullmatch(name) for name in refused)
    assert not any(TEXTURES.fullmatch(name) for name in ("tex1D", "tex2D", "tex3D", "tex1Dfetch", "text2D"))

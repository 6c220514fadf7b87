"""cuda::barrier, cuda::pipeline and cuda::atomic: the program is right, and a wait that lacks is told."""

import pytest
from conftest import ROOT

from cuffi import run
from cuffi.judge import judge

FILE = ROOT / "tests" / "fixtures" / "judge" / "objects.cu"
WAITS = {
    "by_barrier": "    bar.wait(std::move(token));\n",
    "by_pipeline": "    pipe.consumer_wait();\n",
    "by_thread": "  pipe.consumer_wait();\n  __syncthreads();\n",
}


def test_the_numbers(capfd):
    assert run.main([str(FILE)]) == 0
    assert capfd.readouterr().out == "0 bad\n"


@pytest.mark.parametrize("kernel", WAITS)
def test_a_wait_that_lacks(kernel, tmp_path):
    text = FILE.read_text()
    before, found, after = text.partition(WAITS[kernel])
    assert found
    launches = [line for line in text.splitlines() if "<<<" in line and f"{kernel}<<<" not in line]
    text = before + after
    for line in launches:  # the others run in the first test
        text = text.replace(line + "\n", "")
    (tmp_path / "objects.cu").write_text(text)
    said = judge([tmp_path / "objects.cu"])
    races = [finding for finding in said["findings"] if finding["kind"] == "race"]
    assert said["verdict"] == "race" and all(race["kernel"] == kernel for race in races), said

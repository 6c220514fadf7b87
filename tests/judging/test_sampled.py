"""Programs that are out of time run once more by a sample of their blocks, and the verdict says so."""

import pytest

from cuffi.judge import judge
from cuffi.judging.limits import Limits

# Each block sums 256 numbers. The last one has a mistake of its own.
PROGRAM = """
__global__ void sums(float* y) {
  __shared__ float s[256];
  s[threadIdx.x] = blockIdx.x;
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = s[0];
  MISTAKE
}
__global__ void after(float* y) { y[int(y[BLOCKS - 1])] = 1; }  // out of bounds, if the last block has not run
int main() {
  float* y;
  cudaMalloc(&y, 200000 * sizeof(float));
  sums<<<BLOCKS, 256>>>(y);
  after<<<1, 1>>>(y);
  LAST
  return 0;
}
"""
CASES = {
    "sampled": ("", "200000", ""),
    "race": ("if (blockIdx.x == gridDim.x - 1) y[0] = threadIdx.x;", "200000", ""),
    "bounds": ("if (blockIdx.x == gridDim.x - 1) y[gridDim.x + threadIdx.x] = 1;", "200000", ""),
    "host": ("", "2", "for (;;) ;"),
    "hang": ("while (threadIdx.x == 3) ;", "2", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_a_program_that_is_out_of_time(case, tmp_path):
    mistake, blocks, last = CASES[case]
    file = tmp_path / "k.cu"
    file.write_text(PROGRAM.replace("MISTAKE", mistake).replace("BLOCKS", blocks).replace("LAST", last))
    said = judge([file], limits=Limits(seconds=3))
    texts = [one["text"] for one in said["findings"] if one["kind"] == "sampled"]
    assert said["verdict"] == ("sampled" if case == "host" else case), said["findings"]
    if case == "host":
        assert "the host's code" in texts[0] and said["ran"] == ["after", "sums"]
    elif case != "hang":
        assert any("64 of 200000 blocks of sums" in text for text in texts) and said["ran"] == ["sums"]

"""What the host does wrong around launches: told with both lines; and what is right is not told."""

from cuffi.judge import judge
from cuffi.judging.limits import Limits

HEAD = """#include <cuda_runtime.h>
#include <vector>
__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
struct Two { float* own; float* its; };
__global__ void by_structure(Two two) { two.its[threadIdx.x] = two.own[threadIdx.x]; }
"""
WRONG = """int main() {
  const int n = 100;
  float *d, *m, sum = 0, out[n];
  float* h = static_cast<float*>(calloc(n, 4));
  std::vector<float> v(n);
  cudaMalloc(&d, n * 4);
  cudaMallocManaged(&m, n * 4);
  twice<<<1, 128>>>(h, d, n);                                              // 1
  twice<<<1, 128>>>(d, v.data(), n);                                       // 2
  by_structure<<<1, 32>>>(Two{out, d});                                    // 3
  cudaMemcpyAsync(out, d, n * 4, cudaMemcpyDeviceToHost);                  // 4
  sum += out[3];  // after 4
  twice<<<1, 128>>>(d, m, n);                                              // 5
  for (int i = 0; i < n; ++i)
    sum += m[i];  // after 5
  cudaMemset(d, 0, n * 4);
  twice<<<1, 2000>>>(d, m, n);                                             // 6
  cudaMemcpy(h, d, n * 4, cudaMemcpyDeviceToHost);  // after 6
  return sum > 1e30f;
}
"""
RIGHT = """struct Node { int value; };
__global__ void grow(Node** all) { all[threadIdx.x] = new Node; all[threadIdx.x]->value = 1; }
__global__ void shrink(Node** all, float* y) { y[threadIdx.x] = all[threadIdx.x]->value; delete all[threadIdx.x]; }
void CUDART_CB callback(void* data) { static_cast<float*>(data)[0] += 1; }
int main() {
  const int n = 100;
  float *d, *m, *p, *q, sum = 0;
  std::vector<float> v(n), registered(n);
  cudaMalloc(&d, n * 4), cudaMallocManaged(&m, n * 4), cudaMallocHost(&p, n * 4);
  cudaHostAlloc(&q, n * 4, cudaHostAllocMapped);
  cudaHostRegister(registered.data(), n * 4, cudaHostRegisterDefault);
  for (int i = 0; i < n; ++i) m[i] = p[i] = q[i] = registered[i] = i;
  cudaStream_t stream;
  cudaEvent_t event;
  cudaStreamCreate(&stream), cudaEventCreate(&event);
  cudaMemcpyAsync(d, p, n * 4, cudaMemcpyHostToDevice, stream);
  twice<<<1, 128, 0, stream>>>(m, q, n);
  sum += m[0];  // what the kernel reads
  cudaStreamSynchronize(stream);
  sum += q[1];
  twice<<<1, 128>>>(registered.data(), m, n);
  cudaDeviceSynchronize();
  m[2] += 1;
  twice<<<1, 128>>>(q, m, n - 1);
  sum += m[n - 1];  // what the kernel does not touch
  cudaMemcpy(v.data(), m, n * 4, cudaMemcpyDeviceToHost);
  sum += m[3] + v[3];
  cudaMemcpyAsync(p, m, n * 4, cudaMemcpyDeviceToHost, stream);
  cudaEventRecord(event, stream);
  cudaEventSynchronize(event);
  sum += p[4];
  twice<<<1, 128, 0, stream>>>(q, m, n);
  cudaLaunchHostFunc(stream, callback, m);
  cudaStreamSynchronize(stream);
  Node** all;
  cudaMalloc(&all, 32 * sizeof *all);
  grow<<<1, 32>>>(all), shrink<<<1, 32>>>(all, m);
  while (cudaStreamQuery(stream) == cudaErrorNotReady) {}
  sum += m[5];
  by_structure<<<1, 32>>>(Two{m, q});
  twice<<<1, 2000>>>(d, m, n);
  if (cudaGetLastError() == cudaSuccess) return 2;
  return cudaDeviceSynchronize() || sum > 1e30f;
}
"""


def test_both_lines_of_each_mistake(tmp_path):
    file, text = tmp_path / "k.cu", HEAD + WRONG
    file.write_text(text)
    said = judge([file], limits=Limits(60))
    line = {words.partition("// ")[2]: n for n, words in enumerate(text.splitlines(), 1) if "// " in words}
    told = {
        (one["kind"], *(int(its["place"].rpartition(":")[2]) for its in one["accesses"]))
        for one in said["findings"]
    }
    assert {
        ("host-pointer", line["1"], 5),
        ("host-pointer", line["2"], 5),
        ("host-pointer", line["3"], 8),
        ("early-read", line["4"], line["after 4"]),
        ("early-read", line["5"], line["after 5"]),
    } <= told, said
    (launch,) = (one for one in said["findings"] if one["kind"] == "launch")
    assert (
        f"k.cu:{line['6']}: the launch" in launch["text"]
        and f"k.cu:{line['after 6']}: it goes on" in launch["text"]
    )
    assert {kind for kind, *_ in told} == {"host-pointer", "early-read", "launch"}


def test_what_is_right(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(HEAD + RIGHT)
    said = judge([file], limits=Limits(60))
    assert said["verdict"] == "ok" and not said["findings"], said

// Implements caffe/util/cufft.hpp: keeps the plans, and calls torch.fft for
// the transforms (host_services.fft).
#include "caffe/util/cufft.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "caffe/common.hpp"
#include "caffe/host_services.hpp"

namespace {

struct CufftPlan {
  cufftType type;
  int batch;
  std::vector<int> n, in_embed, out_embed;  // embed: empty without gaps
  int in_stride, in_dist, out_stride, out_dist;
};

std::mutex mutex;
std::map<cufftHandle, CufftPlan> plans;

// Appends the distance between transforms, and each axis's stride, for the input or the output.
void append_strides(const std::vector<int>& sizes, int stride, int64_t dist, std::vector<int64_t>* words) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = stride;
  for (int i = static_cast<int>(sizes.size()) - 1; i >= 0; --i) {
    strides[i] = step;
    step *= sizes[i];
  }
  words->push_back(dist ? dist : step);
  words->insert(words->end(), strides.begin(), strides.end());
}

// The same for the plan's input or output. cuFFT's default layout has no gaps, but in place it pads
// the real rows.
void append_side(const CufftPlan& plan, bool in, bool in_place, std::vector<int64_t>* words) {
  const std::vector<int>& embed = in ? plan.in_embed : plan.out_embed;
  if (!embed.empty()) {
    append_strides(embed, in ? plan.in_stride : plan.out_stride, in ? plan.in_dist : plan.out_dist, words);
    return;
  }
  const bool forward = plan.type == CUFFT_R2C || plan.type == CUFFT_D2Z;
  const bool inverse = plan.type == CUFFT_C2R || plan.type == CUFFT_Z2D;
  std::vector<int> sizes = plan.n;
  const int half = sizes.back() / 2 + 1;
  if (in ? inverse : forward) sizes.back() = half;
  if (in_place && (in ? forward : inverse)) sizes.back() = 2 * half;
  append_strides(sizes, 1, 0, words);
}

cufftResult execute(cufftHandle handle, cufftType type, const void* in, void* out, int direction) {
  CufftPlan plan;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = plans.find(handle);
    if (found == plans.end()) return CUFFT_INVALID_PLAN;
    plan = found->second;
  }
  if (plan.type != type) return CUFFT_INVALID_TYPE;
  if (!in || !out || (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE)) return CUFFT_INVALID_VALUE;
  CHECK(caffe::host_services.fft) << "cuFFT's transforms are torch.fft's, and this program has no torch";
  std::vector<int64_t> words = {type,
                                direction,
                                caffe::call_context.device,
                                reinterpret_cast<int64_t>(in),
                                reinterpret_cast<int64_t>(out),
                                plan.batch};
  append_side(plan, true, in == out, &words);
  append_side(plan, false, in == out, &words);
  words.insert(words.end(), plan.n.begin(), plan.n.end());
  const bool done = caffe::host_services.fft(words.data(), static_cast<int64_t>(plan.n.size()));
  return done ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

}  // namespace

cufftResult cufftPlanMany(cufftHandle* handle, int rank, int* n, int* inembed, int istride, int idist,
                          int* onembed, int ostride, int odist, cufftType type, int batch) {
  if (!handle || !n || rank < 1 || rank > 3) return CUFFT_INVALID_VALUE;
  if (batch < 1 || *std::min_element(n, n + rank) < 1) return CUFFT_INVALID_SIZE;
  CufftPlan plan = {type, batch, {n, n + rank}, {}, {}, istride, idist, ostride, odist};
  if (inembed && onembed) {  // as in cuFFT, a single one of them has no effect
    plan.in_embed.assign(inembed, inembed + rank);
    plan.out_embed.assign(onembed, onembed + rank);
  }
  const std::lock_guard<std::mutex> lock(mutex);
  static cufftHandle made = 0;
  plans[*handle = ++made] = std::move(plan);
  return CUFFT_SUCCESS;
}

cufftResult cufftPlan1d(cufftHandle* plan, int nx, cufftType type, int batch) {
  return cufftPlanMany(plan, 1, &nx, nullptr, 0, 0, nullptr, 0, 0, type, batch);
}
cufftResult cufftPlan2d(cufftHandle* plan, int nx, int ny, cufftType type) {
  int n[] = {nx, ny};
  return cufftPlanMany(plan, 2, n, nullptr, 0, 0, nullptr, 0, 0, type, 1);
}
cufftResult cufftPlan3d(cufftHandle* plan, int nx, int ny, int nz, cufftType type) {
  int n[] = {nx, ny, nz};
  return cufftPlanMany(plan, 3, n, nullptr, 0, 0, nullptr, 0, 0, type, 1);
}

cufftResult cufftDestroy(cufftHandle plan) {
  const std::lock_guard<std::mutex> lock(mutex);
  return plans.erase(plan) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
cufftResult cufftSetStream(cufftHandle, cudaStream_t) { return CUFFT_SUCCESS; }

cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* in, cufftComplex* out, int direction) {
  return execute(plan, CUFFT_C2C, in, out, direction);
}
cufftResult cufftExecR2C(cufftHandle plan, cufftReal* in, cufftComplex* out) {
  return execute(plan, CUFFT_R2C, in, out, CUFFT_FORWARD);
}
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* in, cufftReal* out) {
  return execute(plan, CUFFT_C2R, in, out, CUFFT_INVERSE);
}
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleComplex* out, int direction) {
  return execute(plan, CUFFT_Z2Z, in, out, direction);
}
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* in, cufftDoubleComplex* out) {
  return execute(plan, CUFFT_D2Z, in, out, CUFFT_FORWARD);
}
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleReal* out) {
  return execute(plan, CUFFT_Z2D, in, out, CUFFT_INVERSE);
}

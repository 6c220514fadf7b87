// A layer that computes whatever function of the core's math it is told to, and the stock layers as
// registered ones.
// How its layers' CPU code is compiled is of no interest here. To optimise it takes half of the time.
#pragma GCC optimize("O0")
#include <cufft.h>

#include <limits>
#include <string>
#include <vector>

#include "caffe/layer.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/util/cublas.hpp"
#include "caffe/util/im2col.hpp"
#include "caffe/util/math_functions.hpp"

namespace caffe {

template <typename Dtype>
class MathLayer : public Layer<Dtype> {
 public:
  explicit MathLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual inline const char* type() const { return "Math"; }
  virtual inline int ExactNumTopBlobs() const { return 1; }
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    const MathParameter& param = this->layer_param_.math_param();
    top[0]->Reshape(param.shape_size() ? vector<int>(param.shape().begin(), param.shape().end())
                                       : bottom[0]->shape());
  }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    Run(bottom, top, false);
  }
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    Run(bottom, top, true);
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>&, const vector<bool>&, const vector<Blob<Dtype>*>&) {}

 private:
  void Run(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top, bool gpu) {
    const MathParameter& param = this->layer_param_.math_param();
    const std::string& function = param.function();
    const bool blas = function == "symm" || function == "symv" || function == "trsm" || function == "ger";
    // upstream has these for the CPU alone
    gpu = gpu && function != "strided_dot" && function != "hamming" && function != "vsl" && !blas;
    const vector<int> i(param.n().begin(), param.n().end());
    const vector<double> s(param.v().begin(), param.v().end());
    const auto data = [&](size_t b) -> const Dtype* {
      return b >= bottom.size() ? nullptr : gpu ? bottom[b]->gpu_data() : bottom[b]->cpu_data();
    };
    const Dtype *const a = data(0), *const b = data(1);
    Dtype* const y = gpu ? top[0]->mutable_gpu_data() : top[0]->mutable_cpu_data();
    const int n = bottom[0]->count();
    if (param.start() >= 0) {
      CHECK_EQ(bottom[param.start()]->count(), top[0]->count());
      caffe_copy(top[0]->count(), data(param.start()), y);
    } else {
      const Dtype nan = std::numeric_limits<Dtype>::quiet_NaN();
      gpu ? caffe_gpu_set(top[0]->count(), nan, y) : caffe_set(top[0]->count(), nan, y);
    }
    const auto scalar = [&](size_t at) { return static_cast<Dtype>(s[at]); };
    const auto transpose = [&](size_t at) { return i[at] ? CblasTrans : CblasNoTrans; };

#define BOTH(name, cpu_function, gpu_function, ...)              \
  if (function == name) {                                        \
    gpu ? gpu_function(__VA_ARGS__) : cpu_function(__VA_ARGS__); \
    return;                                                      \
  }
    BOTH("copy", caffe_copy, caffe_copy, n, a, y)
    BOTH("set", caffe_set, caffe_gpu_set, n, scalar(0), y)
    BOTH("memset", caffe_memset, caffe_gpu_memset, n * sizeof(Dtype), 0, y)
    BOTH("memcpy", memcpy_cpu, caffe_gpu_memcpy, n * sizeof(Dtype), a, y)
    BOTH("add", caffe_add, caffe_gpu_add, n, a, b, y)
    BOTH("sub", caffe_sub, caffe_gpu_sub, n, a, b, y)
    BOTH("mul", caffe_mul, caffe_gpu_mul, n, a, b, y)
    BOTH("div", caffe_div, caffe_gpu_div, n, a, b, y)
    BOTH("add_in_place", caffe_add, caffe_gpu_add, n, y, b, y)
    BOTH("sqr", caffe_sqr, sqr_gpu, n, a, y)
    BOTH("sqrt", caffe_sqrt, caffe_gpu_sqrt, n, a, y)
    BOTH("exp", caffe_exp, caffe_gpu_exp, n, a, y)
    BOTH("log", caffe_log, caffe_gpu_log, n, a, y)
    BOTH("abs", caffe_abs, caffe_gpu_abs, n, a, y)
    BOTH("fabs", caffe_cpu_fabs, caffe_gpu_fabs, n, a, y)
    BOTH("sign", caffe_cpu_sign, caffe_gpu_sign, n, a, y)
    BOTH("sgnbit", caffe_cpu_sgnbit, caffe_gpu_sgnbit, n, a, y)
    BOTH("powx", caffe_powx, caffe_gpu_powx, n, a, scalar(0), y)
    BOTH("axpy", caffe_axpy, caffe_gpu_axpy, n, scalar(0), a, y)
    BOTH("axpby", caffe_cpu_axpby, caffe_gpu_axpby, n, scalar(0), a, scalar(1), y)
    BOTH("scal", caffe_scal, caffe_gpu_scal, n, scalar(0), y)
    BOTH("scale", caffe_cpu_scale, caffe_gpu_scale, n, scalar(0), a, y)
    BOTH("add_scalar", caffe_add_scalar, caffe_gpu_add_scalar, n, scalar(0), y)
    BOTH("scal_on_stream", scal_cpu, caffe_gpu_scal, n, scalar(0), y, current_stream())
    BOTH("gemm", caffe_cpu_gemm, caffe_gpu_gemm, transpose(0), transpose(1), i[2], i[3], i[4], scalar(0), a,
         b, scalar(1), y)
    BOTH("gemv", caffe_cpu_gemv, caffe_gpu_gemv, transpose(0), i[1], i[2], scalar(0), a, b, scalar(1), y)
    BOTH("im2col", im2col_cpu, im2col_gpu, a, i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7], i[8], i[9],
         i[10], y)
    BOTH("col2im", col2im_cpu, col2im_gpu, a, i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7], i[8], i[9],
         i[10], y)
    BOTH("im2col without dilation", im2col_cpu, im2col_gpu, a, i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7],
         i[8], y)
    BOTH("uniform", caffe_rng_uniform, caffe_gpu_rng_uniform, n, scalar(0), scalar(1), y)
    BOTH("gaussian", caffe_rng_gaussian, caffe_gpu_rng_gaussian, n, scalar(0), scalar(1), y)
#undef BOTH
    if (function == "bernoulli" || function == "bits" || function == "rand") {
      Integers(function, n, s.empty() ? 0 : scalar(0), top[0], gpu);
    } else if (function == "geam") {
      geam(Caffe::cublas_handle(), cublas_transpose(i[0]), cublas_transpose(i[1]), i[2], i[3], scalar(0), a,
           i[4], scalar(1), b, i[5], y, i[6]);
    } else if (blas) {
      Blas(function, i, scalar(0), a, b, y);
    } else if (function == "vsl") {
      vSin(n, a, y);
      vAdd(n, a, y, y);
      vPowx(n, y, scalar(0), y);
    } else if (function == "gemm_batch") {
      Batch(i, *bottom[0], *bottom[1], top[0], gpu);
    } else if (function == "fft" || function == "rfft" || function == "irfft") {
      Transform(function, i, a, y);
    } else if (function == "im2col_nd" || function == "col2im_nd") {
      ManyAxes(function == "im2col_nd", i, a, y, gpu);
    } else {
      top[0]->mutable_cpu_data()[0] = Scalar(function, n, a, b, i, scalar, gpu);
    }
  }

  // i: the order, the side, the triangle, transposed or not, the diagonal, then the sizes m and n.
  static void Blas(const std::string& function, const vector<int>& i, Dtype alpha, const Dtype* a,
                   const Dtype* b, Dtype* y) {
    const auto order = CBLAS_ORDER(i[0]);
    const auto side = CBLAS_SIDE(i[1]);
    const auto uplo = CBLAS_UPLO(i[2]);
    const int m = i[5], n = i[6], k = side == CblasLeft ? m : n, step = order == CblasRowMajor ? n : m;
    const auto run = [&](auto symm, auto symv, auto trsm, auto ger) {
      if (function == "symm") symm(order, side, uplo, m, n, alpha, a, k, b, step, 2, y, step);
      if (function == "symv") symv(order, uplo, m, alpha, a, m, b, 1, 2, y, 1);
      if (function == "trsm")
        trsm(order, side, uplo, CBLAS_TRANSPOSE(i[3]), CBLAS_DIAG(i[4]), m, n, alpha, a, k, y, step);
      if (function == "ger") ger(order, m, n, alpha, a, 1, b, 1, y, step);
    };
    if constexpr (std::is_same<Dtype, float>::value) {
      run(cblas_ssymm, cblas_ssymv, cblas_strsm, cblas_sger);
    } else {
      run(cblas_dsymm, cblas_dsymv, cblas_dtrsm, cblas_dger);
    }
  }

  // Row-major products c[j] = a[j] b[j], of matrices that lie one after the other; sizes[4] of them, by their
  // addresses or, with sizes[0] on the device, by the steps between them.
  static void Batch(const vector<int>& sizes, const Blob<Dtype>& a, const Blob<Dtype>& b, Blob<Dtype>* c,
                    bool gpu) {
    int m = sizes[1], n = sizes[2], k = sizes[3], count = sizes[4];
    const Dtype one = 1, zero = 0;
    SyncedMemory addresses(3 * count * sizeof(Dtype*));
    Dtype** all = static_cast<Dtype**>(addresses.mutable_cpu_data());
    for (int j = 0; j < count; ++j) {
      all[j] = const_cast<Dtype*>(gpu ? a.gpu_data() : a.cpu_data()) + j * m * k;
      all[count + j] = const_cast<Dtype*>(gpu ? b.gpu_data() : b.cpu_data()) + j * k * n;
      all[2 * count + j] = (gpu ? c->mutable_gpu_data() : c->mutable_cpu_data()) + j * m * n;
    }
    if (gpu) all = static_cast<Dtype**>(addresses.mutable_gpu_data());
    const Dtype **as = const_cast<const Dtype**>(all), **bs = as + count;
    const auto run = [&](auto batch, auto addressed, auto stepped) {
      if (!gpu) {
        const CBLAS_TRANSPOSE plain = CblasNoTrans;
        batch(CblasRowMajor, &plain, &plain, &m, &n, &k, &one, as, &k, bs, &n, &zero, all + 2 * count, &n, 1,
              &count);
      } else if (sizes[0]) {
        CUBLAS_CHECK(stepped(Caffe::cublas_handle(), CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b.gpu_data(), n,
                             k * n, a.gpu_data(), k, m * k, &zero, c->mutable_gpu_data(), n, m * n, count));
      } else {
        CUBLAS_CHECK(addressed(Caffe::cublas_handle(), CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, bs, n, as, k,
                               &zero, all + 2 * count, n, count));
      }
    };
    if constexpr (std::is_same<Dtype, float>::value) {
      run(cblas_sgemm_batch, cublasSgemmBatched, cublasSgemmStridedBatched);
    } else {
      run(cblas_dgemm_batch, cublasDgemmBatched, cublasDgemmStridedBatched);
    }
  }

  static void memcpy_cpu(size_t bytes, const void* from, void* to) { memcpy(to, from, bytes); }
  static void sqr_gpu(int n, const Dtype* a, Dtype* y) { caffe_gpu_mul(n, a, a, y); }
  static void scal_cpu(int n, Dtype alpha, Dtype* y, cudaStream_t) { caffe_scal(n, alpha, y); }

  template <typename S>
  Dtype Scalar(const std::string& function, int n, const Dtype* a, const Dtype* b, const vector<int>& i,
               const S& scalar, bool gpu) {
    Dtype result = 0;
    if (function == "dot") {
      gpu ? caffe_gpu_dot(n, a, b, &result) : void(result = caffe_cpu_dot(n, a, b));
    } else if (function == "asum") {
      gpu ? caffe_gpu_asum(n, a, &result) : void(result = caffe_cpu_asum(n, a));
    } else if (function == "strided_dot") {
      result = caffe_cpu_strided_dot(i[0], a, i[1], b, i[2]);
    } else if (function == "hamming") {
      result = caffe_cpu_hamming_distance(n, a, b);
    } else if (function == "nextafter") {
      result = caffe_nextafter(scalar(0));
    } else if (function == "cublas") {  // a layer's own call
      Blob<Dtype> own(vector<int>(1, n));
      caffe_copy(n, a, own.mutable_gpu_data());
      cublas_scal(n, Dtype(3), own.mutable_gpu_data());
      result = own.cpu_data()[n - 1];
    } else if (function == "pair") {
      const int one = 1;
      result = make_pair<int, int>(n, one).first + std::make_pair<int, const char*>(one, "text").first +
               make_pair(one - 1, "text").first;
    } else if (function == "amax" || function == "amin") {
      result = Place(i[0], a, i[1], function == "amax");
    } else {
      LOG(FATAL) << "no function " << function;
    }
    return result;
  }
  static int Place(int n, const Dtype* x, int step, bool most) {
    int place;
    if constexpr (std::is_same<Dtype, float>::value) {
      CUBLAS_CHECK((most ? cublasIsamax : cublasIsamin)(Caffe::cublas_handle(), n, x, step, &place));
    } else {
      CUBLAS_CHECK((most ? cublasIdamax : cublasIdamin)(Caffe::cublas_handle(), n, x, step, &place));
    }
    return place;
  }
  static cublasOperation_t cublas_transpose(int wanted) { return wanted ? CUBLAS_OP_T : CUBLAS_OP_N; }
  static void geam(cublasHandle_t handle, cublasOperation_t trans_a, cublasOperation_t trans_b, int m, int n,
                   Dtype alpha, const Dtype* a, int lda, Dtype beta, const Dtype* b, int ldb, Dtype* c,
                   int ldc) {
    if constexpr (std::is_same<Dtype, float>::value) {
      CUBLAS_CHECK(cublasSgeam(handle, trans_a, trans_b, m, n, &alpha, a, lda, &beta, b, ldb, c, ldc));
    } else {
      CUBLAS_CHECK(cublasDgeam(handle, trans_a, trans_b, m, n, &alpha, a, lda, &beta, b, ldb, c, ldc));
    }
  }
  // i: direction, batch, 0 or 1 for a transform in place (from y), rank, sizes; then, or nothing: input's
  // stride, distance and array sizes, and the output's. Complex numbers are pairs.
  static void Transform(const std::string& function, const std::vector<int>& i, const Dtype* a, Dtype* y) {
    const bool single = std::is_same<Dtype, float>::value, forward = function == "rfft";
    const cufftType type = function == "fft" ? (single ? CUFFT_C2C : CUFFT_Z2Z)
                           : forward         ? (single ? CUFFT_R2C : CUFFT_D2Z)
                                             : (single ? CUFFT_C2R : CUFFT_Z2D);
    const int rank = i[3], side = 4 + rank;
    std::vector<int> more(i.begin() + side, i.end()), n(i.begin() + 4, i.begin() + side);
    const bool plain = more.empty();
    more.resize(2 * (2 + rank));
    int *in = more.data(), *out = more.data() + 2 + rank;
    cufftHandle plan, another;
    CHECK_EQ(cufftPlanMany(&plan, rank, n.data(), plain ? nullptr : in + 2, in[0], in[1],
                           plain ? nullptr : out + 2, out[0], out[1], type, i[1]),
             CUFFT_SUCCESS);
    Dtype* x = i[2] ? y : const_cast<Dtype*>(a);
    if constexpr (std::is_same<Dtype, float>::value) {
      CHECK_EQ(type == CUFFT_C2C   ? cufftExecC2C(plan, (cufftComplex*)x, (cufftComplex*)y, i[0])
               : type == CUFFT_R2C ? cufftExecR2C(plan, x, (cufftComplex*)y)
                                   : cufftExecC2R(plan, (cufftComplex*)x, y),
               CUFFT_SUCCESS);
    } else {
      CHECK_EQ(type == CUFFT_Z2Z   ? cufftExecZ2Z(plan, (cufftDoubleComplex*)x, (cufftDoubleComplex*)y, i[0])
               : type == CUFFT_D2Z ? cufftExecD2Z(plan, x, (cufftDoubleComplex*)y)
                                   : cufftExecZ2D(plan, (cufftDoubleComplex*)x, y),
               CUFFT_SUCCESS);
    }
    CHECK_EQ(cufftPlan1d(&another, 0, type, 1), CUFFT_INVALID_SIZE);
    CHECK_EQ(cufftExecC2C(another = plan + 1000, nullptr, nullptr, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
    CHECK_EQ(cufftDestroy(plan), CUFFT_SUCCESS);
    CHECK_EQ(cufftDestroy(plan), CUFFT_INVALID_PLAN);
  }
  void cublas_scal(int n, float alpha, float* x) {
    CUBLAS_CHECK(cublasSscal(Caffe::cublas_handle(), n, &alpha, x, 1));
  }
  void cublas_scal(int n, double alpha, double* x) {
    CUBLAS_CHECK(cublasDscal(Caffe::cublas_handle(), n, &alpha, x, 1));
  }

  void Integers(const std::string& function, int n, Dtype p, Blob<Dtype>* top, bool gpu) {
    Blob<int> drawn(vector<int>(1, n));
    if (function == "rand") {
      for (int k = 0; k < n; ++k) drawn.mutable_cpu_data()[k] = static_cast<int>(caffe_rng_rand() >> 1);
    } else if (function == "bits") {
      caffe_gpu_rng_uniform(n, reinterpret_cast<unsigned int*>(drawn.mutable_gpu_data()));
    } else if (gpu) {
      caffe_gpu_rng_bernoulli(n, p, drawn.mutable_gpu_data());
    } else {
      caffe_rng_bernoulli(n, p, reinterpret_cast<unsigned int*>(drawn.mutable_cpu_data()));
    }
    for (int k = 0; k < n; ++k) top->mutable_cpu_data()[k] = static_cast<Dtype>(drawn.cpu_data()[k]);
  }

  // i: spatial axes, then image's shape and columns' (each with its channels), kernel, pad, stride, dilation
  void ManyAxes(bool forth, const vector<int>& i, const Dtype* from, Dtype* to, bool gpu) {
    const int axes = i[0];
    Blob<int> words(vector<int>(1, static_cast<int>(i.size())));
    std::copy(i.begin(), i.end(), words.mutable_cpu_data());
    const int* const im = (gpu ? words.gpu_data() : words.cpu_data()) + 1;
    const int *const col = im + axes + 1, *const kernel = col + axes + 1, *const pad = kernel + axes,
                     *const stride = pad + axes, *const dilation = stride + axes;
    int im_size = 1, col_size = i[1];
    for (int k = 0; k <= axes; ++k) im_size *= i[1 + k];
    for (int k = 1; k <= axes; ++k) col_size *= i[axes + 2 + k];
    if (gpu) {
      forth ? im2col_nd_gpu(from, axes, col_size, im, col, kernel, pad, stride, dilation, to)
            : col2im_nd_gpu(from, axes, im_size, im, col, kernel, pad, stride, dilation, to);
    } else {
      forth ? im2col_nd_cpu(from, axes, im, col, kernel, pad, stride, dilation, to)
            : col2im_nd_cpu(from, axes, im, col, kernel, pad, stride, dilation, to);
    }
  }
};

INSTANTIATE_CLASS(MathLayer);
REGISTER_LAYER_CLASS(Math);

template <typename Dtype>
shared_ptr<Layer<Dtype>> Stock(const LayerParameter& param) {
  return StockLayer<Dtype>(param);
}

REGISTER_LAYER_CREATOR(Bias, Stock);
REGISTER_LAYER_CREATOR(Concat, Stock);
REGISTER_LAYER_CREATOR(Convolution, Stock);
REGISTER_LAYER_CREATOR(Eltwise, Stock);
REGISTER_LAYER_CREATOR(Flatten, Stock);
REGISTER_LAYER_CREATOR(InnerProduct, Stock);
REGISTER_LAYER_CREATOR(Pooling, Stock);
REGISTER_LAYER_CREATOR(Power, Stock);
REGISTER_LAYER_CREATOR(ReLU, Stock);
REGISTER_LAYER_CREATOR(Reduction, Stock);
REGISTER_LAYER_CREATOR(Reshape, Stock);
REGISTER_LAYER_CREATOR(Scale, Stock);
REGISTER_LAYER_CREATOR(Sigmoid, Stock);
REGISTER_LAYER_CREATOR(Slice, Stock);
REGISTER_LAYER_CREATOR(Softmax, Stock);
REGISTER_LAYER_CREATOR(Split, Stock);
REGISTER_LAYER_CREATOR(TanH, Stock);

}  // namespace caffe

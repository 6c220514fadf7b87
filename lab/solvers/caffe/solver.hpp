// What Caffe's solvers (src/caffe/solvers/*.cpp) need of Caffe: blobs, math on arrays, settings and a net of bare blobs.
// compare.py compiles a fork's own files against it, unedited.
#pragma once
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#define DISABLE_COPY_AND_ASSIGN(name) \
  name(const name&) = delete;         \
  name& operator=(const name&) = delete
#define INSTANTIATE_CLASS(name) template class name<double>
#define REGISTER_SOLVER_CLASS(name) static_assert(true)
#define NO_GPU std::abort()

struct Quiet {
  template <typename T>
  Quiet& operator<<(const T&) {
    return *this;
  }
};
struct Fatal {
  explicit Fatal(const char* what) { std::cerr << what; }
  template <typename T>
  Fatal& operator<<(const T& value) {
    std::cerr << value;
    return *this;
  }
  ~Fatal() { std::abort(); }
};
#define LOG(level) Quiet()
#define LOG_IF(level, condition) Quiet()
#define CHECK(condition) \
  if (!(condition)) Fatal("CHECK: " #condition " ")
#define CHECK_EQ(a, b) CHECK((a) == (b))
#define CHECK_GE(a, b) CHECK((a) >= (b))
#define CHECK_GT(a, b) CHECK((a) > (b))
#define CHECK_LT(a, b) CHECK((a) < (b))

namespace caffe {
using std::shared_ptr;
using std::string;
using std::vector;

struct Caffe {
  enum Brew { CPU, GPU };
  static Brew mode() { return CPU; }
  static bool root_solver() { return true; }
};

struct BlobProto {};

template <typename Dtype>
class Blob {
 public:
  explicit Blob(const vector<int>& shape) : shape_(shape), data_(shape[0]), diff_(shape[0]) {}
  const vector<int>& shape() const { return shape_; }
  int count() const { return shape_[0]; }
  const Dtype* cpu_data() const { return data_.data(); }
  const Dtype* cpu_diff() const { return diff_.data(); }
  Dtype* mutable_cpu_data() { return data_.data(); }
  Dtype* mutable_cpu_diff() { return diff_.data(); }
  Dtype sumsq_diff() const {
    Dtype sum = 0;
    for (Dtype d : diff_) sum += d * d;
    return sum;
  }
  void scale_diff(Dtype by) {
    for (Dtype& d : diff_) d *= by;
  }
  void ToProto(BlobProto*) const {}
  void FromProto(const BlobProto&) {}

 private:
  vector<int> shape_;
  vector<Dtype> data_, diff_;
};

template <typename F>
void each(int n, F f) {
  for (int i = 0; i < n; ++i) f(i);
}
template <typename T>
void caffe_copy(int n, const T* x, T* y) {
  std::memmove(y, x, n * sizeof(T));
}
template <typename T>
void caffe_set(int n, T a, T* y) {
  each(n, [&](int i) { y[i] = a; });
}
template <typename T>
void caffe_scal(int n, T a, T* x) {
  each(n, [&](int i) { x[i] *= a; });
}
template <typename T>
void caffe_axpy(int n, T a, const T* x, T* y) {
  each(n, [&](int i) { y[i] += a * x[i]; });
}
template <typename T>
void caffe_cpu_axpby(int n, T a, const T* x, T b, T* y) {
  each(n, [&](int i) { y[i] = a * x[i] + b * y[i]; });
}
template <typename T>
void caffe_cpu_scale(int n, T a, const T* x, T* y) {
  each(n, [&](int i) { y[i] = a * x[i]; });
}
template <typename T>
void caffe_cpu_sign(int n, const T* x, T* y) {
  each(n, [&](int i) { y[i] = (x[i] > 0) - (x[i] < 0); });
}
template <typename T>
void caffe_powx(int n, const T* x, T b, T* y) {
  each(n, [&](int i) { y[i] = std::pow(x[i], b); });
}
template <typename T>
void caffe_add(int n, const T* a, const T* b, T* y) {
  each(n, [&](int i) { y[i] = a[i] + b[i]; });
}
template <typename T>
void caffe_mul(int n, const T* a, const T* b, T* y) {
  each(n, [&](int i) { y[i] = a[i] * b[i]; });
}
template <typename T>
void caffe_div(int n, const T* a, const T* b, T* y) {
  each(n, [&](int i) { y[i] = a[i] / b[i]; });
}
template <typename T>
void caffe_add_scalar(int n, T a, T* y) {
  each(n, [&](int i) { y[i] += a; });
}

// The fields of SolverParameter that solvers read. Numbers are float, as in the message.
enum SolverParameter_SnapshotFormat {
  SolverParameter_SnapshotFormat_HDF5,
  SolverParameter_SnapshotFormat_BINARYPROTO
};
struct SolverParameter {
  string lr_policy_, regularization_type_;
  float base_lr_, gamma_, power_, momentum_, weight_decay_, clip_gradients_, delta_, momentum2_, rms_decay_;
  int stepsize_, max_iter_, iter_size_;
  vector<int> stepvalue_;
  const string& lr_policy() const { return lr_policy_; }
  const string& regularization_type() const { return regularization_type_; }
  float base_lr() const { return base_lr_; }
  float gamma() const { return gamma_; }
  float power() const { return power_; }
  float momentum() const { return momentum_; }
  float weight_decay() const { return weight_decay_; }
  float clip_gradients() const { return clip_gradients_; }
  float delta() const { return delta_; }
  float momentum2() const { return momentum2_; }
  float rms_decay() const { return rms_decay_; }
  int stepsize() const { return stepsize_; }
  int max_iter() const { return max_iter_; }
  int iter_size() const { return iter_size_; }
  int display() const { return 0; }
  int stepvalue(int i) const { return stepvalue_[i]; }
  int stepvalue_size() const { return static_cast<int>(stepvalue_.size()); }
  SolverParameter_SnapshotFormat snapshot_format() const {
    return SolverParameter_SnapshotFormat_BINARYPROTO;
  }
};

struct NetParameter {};
struct SolverState {
  void set_iter(int) {}
  void set_learned_net(const string&) {}
  void set_current_step(int) {}
  void clear_history() {}
  int iter() const { return 0; }
  int current_step() const { return 0; }
  int history_size() const { return 0; }
  bool has_learned_net() const { return false; }
  string learned_net() const { return ""; }
  BlobProto* add_history() { return &blob; }
  const BlobProto& history(int) const { return blob; }
  BlobProto blob;
};
template <typename T>
void WriteProtoToBinaryFile(const T&, const char*) {}
template <typename T>
bool ReadProtoFromBinaryFile(const char*, T*) {
  return true;
}
template <typename T>
bool ReadProtoFromBinaryFile(const string&, T*) {
  return true;
}
template <typename T>
void ReadNetParamsFromBinaryFileOrDie(const string&, T*) {}

template <typename Dtype>
struct Net {
  vector<shared_ptr<Blob<Dtype>>> owned;
  vector<Blob<Dtype>*> params;
  vector<float> lr, decay;
  const vector<Blob<Dtype>*>& learnable_params() const { return params; }
  const vector<float>& params_lr() const { return lr; }
  const vector<float>& params_weight_decay() const { return decay; }
  void Update() {
    for (Blob<Dtype>* p : params) caffe_axpy(p->count(), Dtype(-1), p->cpu_diff(), p->mutable_cpu_data());
  }
  template <typename T>
  void CopyTrainedLayersFrom(const T&) {}
};

// compare.cpp makes the net before the solver, whose constructor looks at it.
extern shared_ptr<Net<double>> the_net;

template <typename Dtype>
class Solver {
 public:
  explicit Solver(const SolverParameter& param) : param_(param), net_(the_net) {}
  explicit Solver(const string&) {}
  virtual ~Solver() {}
  virtual void ApplyUpdate() = 0;

 protected:
  string SnapshotFilename(const string& extension) { return extension; }
  SolverParameter param_;
  int iter_ = 0, current_step_ = 0;
  shared_ptr<Net<Dtype>> net_;
};
}  // namespace caffe

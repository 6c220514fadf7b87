// The names that every Caffe source relies on.
#ifndef CAFFE_COMMON_HPP_
#define CAFFE_COMMON_HPP_

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <sys/time.h>  // gettimeofday, which boost brought

#include <algorithm>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "boost/shared_ptr.hpp"
#include "caffe/util/device_alternate.hpp"
#include "caffe/util/mixed_max.hpp"

#define STRINGIFY(m) #m
#define AS_STRING(m) STRINGIFY(m)

#define DISABLE_COPY_AND_ASSIGN(classname) \
 private:                                  \
  classname(const classname&);             \
  classname& operator=(const classname&)

// Instantiations are weak: if a fork's library has its own version of one of our layers, the linker
// uses the fork's.
#define INSTANTIATE_CLASS(classname)          \
  inline char gInstantiationGuard##classname; \
  template class classname<float>;            \
  template class classname<double>

#define CAFFE_INSTANTIATE_FORWARD_(classname, Dtype)                                   \
  template void classname<Dtype>::Forward_gpu(const std::vector<Blob<Dtype>*>& bottom, \
                                              const std::vector<Blob<Dtype>*>& top)
#define CAFFE_INSTANTIATE_BACKWARD_(classname, Dtype)                                   \
  template void classname<Dtype>::Backward_gpu(const std::vector<Blob<Dtype>*>& top,    \
                                               const std::vector<bool>& propagate_down, \
                                               const std::vector<Blob<Dtype>*>& bottom)
#define INSTANTIATE_LAYER_GPU_FORWARD(classname) \
  CAFFE_INSTANTIATE_FORWARD_(classname, float);  \
  CAFFE_INSTANTIATE_FORWARD_(classname, double);
#define INSTANTIATE_LAYER_GPU_BACKWARD(classname) \
  CAFFE_INSTANTIATE_BACKWARD_(classname, float);  \
  CAFFE_INSTANTIATE_BACKWARD_(classname, double)
#define INSTANTIATE_LAYER_GPU_FUNCS(classname) \
  INSTANTIATE_LAYER_GPU_FORWARD(classname);    \
  INSTANTIATE_LAYER_GPU_BACKWARD(classname)

// Microsoft's name of snprintf.
#define _snprintf snprintf

// core/logging.cpp recognises this message by its text, because some forks write the text themselves.
#define NOT_IMPLEMENTED LOG(FATAL) << "Not Implemented Yet"

namespace std {

// As before C++11: make_pair<int, int>(i, j) also accepts variables. Not for arrays and functions.
template <typename A, typename B,
          typename = enable_if_t<is_same<decay_t<A>, A>::value && is_same<decay_t<B>, B>::value>>
pair<A, B> make_pair(const A& first, const B& second) {
  return pair<A, B>(first, second);
}

}  // namespace std

namespace cv {
class Mat;
}

namespace caffe {

using boost::shared_ptr;
using std::fstream;
using std::ios;
using std::isinf;
using std::isnan;
using std::iterator;
using std::make_pair;
using std::map;
using std::ostringstream;
using std::pair;
using std::set;
using std::string;
using std::stringstream;
using std::vector;

void GlobalInit(int* pargc, char*** pargv);

// Caffe's singleton, one per thread. The running call sets its mode and device (call_context).
class Caffe {
 public:
  ~Caffe();
  static Caffe& Get();

  enum Brew { CPU, GPU };
  enum Phase { TRAIN, TEST };  // before September 2014 Caffe::phase() had the phase, not the layer

  // A handle of a std::mt19937. Copies share the generator, as in Caffe.
  class RNG {
   public:
    RNG();
    explicit RNG(unsigned int seed);
    explicit RNG(const RNG& other) = default;
    RNG& operator=(const RNG& other) = default;
    void* generator() { return generator_.get(); }

   private:
    // No std::mt19937: <random> is a tenth of what a layer's .cu has to read.
    shared_ptr<void> generator_;
  };

  // The call's generator. Its first use in a call seeds it.
  static RNG& rng_stream();
  // Sets the seed for the call's first use of rng_stream(). 0: draw a seed from torch.
  static void begin_call(uint64_t seed);

  static cublasHandle_t cublas_handle();
  // For forks whose Caffe has a stream of its own.
  static cudaStream_t cuda_stream() { return current_stream(); }

  static Brew mode() { return call_context.mode == 1 ? GPU : CPU; }
  static void set_mode(Brew mode);
  static Phase phase() { return call_context.is_train ? TRAIN : TEST; }
  static void set_phase(Phase phase) { call_context.is_train = phase == TRAIN; }
  static void set_random_seed(const unsigned int seed);
  static void SetDevice(const int device_id);
  static void DeviceQuery();
  static bool CheckDevice(const int device_id);
  static int FindDevice(const int start_id = 0);

  // There is always one solver: one process trains.
  static int solver_count() { return Get().solver_count_; }
  static void set_solver_count(int count) { Get().solver_count_ = count; }
  static int solver_rank() { return Get().solver_rank_; }
  static void set_solver_rank(int rank) { Get().solver_rank_ = rank; }
  static bool multiprocess() { return Get().multiprocess_; }
  static void set_multiprocess(bool multiprocess) { Get().multiprocess_ = multiprocess; }
  static bool root_solver() { return Get().solver_rank_ == 0; }
  static void set_root_solver(bool root) { Get().solver_rank_ = root ? 0 : 1; }

 private:
  Caffe();

  shared_ptr<RNG> random_generator_;
  uint64_t call_seed_ = 0;
  bool reseed_ = false;
  int solver_count_ = 1;
  int solver_rank_ = 0;
  bool multiprocess_ = false;

  DISABLE_COPY_AND_ASSIGN(Caffe);
};

}  // namespace caffe

#endif  // CAFFE_COMMON_HPP_

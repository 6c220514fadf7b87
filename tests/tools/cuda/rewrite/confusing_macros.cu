// Macros that no C++ grammar knows do not hide kernels or launches.
#include "caffe_cuda_macro.h"
#define INSTANTIATE(name) template class name<float>; template class name<double>
#define BEGIN_SPACE namespace space {
#define END_SPACE }
#define RETURNS(type) type
#define FOR_ALL(i, n) for (int i = 0; i < n; ++i)
template <typename T>
class Layer {
 public:
  Layer() : count_{1}, other_(2) {}
  ~Layer() {}
  void Forward(int n, T* x);
  bool operator<(const Layer& o) const { return count_ < o.count_; }
 private:
  int count_, other_;
};
BEGIN_SPACE
template <typename T>
__global__ RETURNS(void) unusual(const int n, T* x) {
  CUDA_KERNEL_LOOP(i, n) FOR_ALL(k, 3) x[i] = k;
}
END_SPACE
template <typename T>
void Layer<T>::Forward(int n, T* x) {
  FOR_ALL(i, n)
    space::unusual<T><<<1, 2>>>(n, x);
  FOR_ALL(i, n) {
    space::unusual<T>
        <<<1, 2>>>(n, x);
  }
}
INSTANTIATE(Layer);
#ifdef __cplusplus
extern "C" {
#endif
__global__ void in_extern_c(int* x) { x[0] = 1; }
#ifdef __cplusplus
}
#endif

// The part of cuFFT's interface that layers use. On both backends torch.fft computes the transforms, on the
// call's stream. So nothing of cuFFT is needed at build time, and torch has the plans and the workspace.
#pragma once

#ifdef CAFFE_HOST_BACKEND
#include "host/cuda_runtime.h"
#else
#include <cuda_runtime.h>
#endif
#include "caffe/host_services.hpp"

typedef int cufftHandle;

enum cufftResult {
  CUFFT_SUCCESS = 0,
  CUFFT_INVALID_PLAN = 1,
  CUFFT_ALLOC_FAILED = 2,
  CUFFT_INVALID_TYPE = 3,
  CUFFT_INVALID_VALUE = 4,
  CUFFT_INTERNAL_ERROR = 5,
  CUFFT_EXEC_FAILED = 6,
  CUFFT_SETUP_FAILED = 7,
  CUFFT_INVALID_SIZE = 8,
};
enum cufftType {
  CUFFT_R2C = CAFFE_FFT_R2C,
  CUFFT_C2R = CAFFE_FFT_C2R,
  CUFFT_C2C = CAFFE_FFT_C2C,
  CUFFT_D2Z = CAFFE_FFT_D2Z,
  CUFFT_Z2D = CAFFE_FFT_Z2D,
  CUFFT_Z2Z = CAFFE_FFT_Z2Z,
};
const int CUFFT_FORWARD = CAFFE_FFT_FORWARD, CUFFT_INVERSE = 1;

typedef float cufftReal;
typedef double cufftDoubleReal;
typedef float2 cufftComplex;
typedef double2 cufftDoubleComplex;

cufftResult cufftPlan1d(cufftHandle* plan, int nx, cufftType type, int batch);
cufftResult cufftPlan2d(cufftHandle* plan, int nx, int ny, cufftType type);
cufftResult cufftPlan3d(cufftHandle* plan, int nx, int ny, int nz, cufftType type);
// inembed, onembed: the sizes of the arrays that hold the transforms. Null: the transforms'
// sizes, without gaps.
cufftResult cufftPlanMany(cufftHandle* plan, int rank, int* n, int* inembed, int istride, int idist,
                          int* onembed, int ostride, int odist, cufftType type, int batch);
cufftResult cufftDestroy(cufftHandle plan);
cufftResult cufftSetStream(cufftHandle plan,
                           cudaStream_t stream);  // no effect: it is always the call's stream

cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* in, cufftComplex* out, int direction);
cufftResult cufftExecR2C(cufftHandle plan, cufftReal* in, cufftComplex* out);
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* in, cufftReal* out);
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleComplex* out, int direction);
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* in, cufftDoubleComplex* out);
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleReal* out);

// The types of CUDA's libraries, for files that name them in structs and in host code beside kernels. The libraries are
// not here: a host function that calls one is left out (tools/new_layer/host_trim.py).
#pragma once

#include <cuComplex.h>
#include <cuda_bf16.h>
#ifdef CAFFE_HOST_BACKEND
#include "host/cublas_v2.h"
#endif

// Handles, and what a library keeps behind a pointer.
#define CAFFE_OPAQUE(name) typedef struct name##_opaque* name;
#ifndef CAFFE_HOST_BACKEND
CAFFE_OPAQUE(cublasHandle_t)
#endif
CAFFE_OPAQUE(cublasXtHandle_t)
CAFFE_OPAQUE(cublasLtHandle_t)
CAFFE_OPAQUE(cublasLtMatmulDesc_t)
CAFFE_OPAQUE(cublasLtMatrixLayout_t)
CAFFE_OPAQUE(cublasLtMatmulPreference_t)
CAFFE_OPAQUE(cusparseHandle_t)
CAFFE_OPAQUE(cusparseMatDescr_t)
CAFFE_OPAQUE(cusparseSpMatDescr_t)
CAFFE_OPAQUE(cusparseConstSpMatDescr_t)
CAFFE_OPAQUE(cusparseDnMatDescr_t)
CAFFE_OPAQUE(cusparseDnVecDescr_t)
CAFFE_OPAQUE(cusparseConstDnVecDescr_t)
CAFFE_OPAQUE(cusparseSpVecDescr_t)
CAFFE_OPAQUE(cusparseSpGEMMDescr_t)
CAFFE_OPAQUE(cusparseSpSVDescr_t)
CAFFE_OPAQUE(cusparseSpMVOpPlan_t)
CAFFE_OPAQUE(cusolverDnHandle_t)
CAFFE_OPAQUE(cusolverSpHandle_t)
CAFFE_OPAQUE(cusolverRfHandle_t)
CAFFE_OPAQUE(cusolverDnParams_t)
CAFFE_OPAQUE(csrqrInfo_t)
CAFFE_OPAQUE(syevjInfo_t)
CAFFE_OPAQUE(gesvdjInfo_t)
CAFFE_OPAQUE(cudnnHandle_t)
CAFFE_OPAQUE(cudnnTensorDescriptor_t)
CAFFE_OPAQUE(cudnnFilterDescriptor_t)
CAFFE_OPAQUE(cudnnConvolutionDescriptor_t)
CAFFE_OPAQUE(cudnnActivationDescriptor_t)
CAFFE_OPAQUE(cudnnPoolingDescriptor_t)
CAFFE_OPAQUE(cudnnLRNDescriptor_t)
CAFFE_OPAQUE(cudnnDropoutDescriptor_t)
CAFFE_OPAQUE(cudnnOpTensorDescriptor_t)
CAFFE_OPAQUE(cudnnReduceTensorDescriptor_t)
CAFFE_OPAQUE(cudnnSpatialTransformerDescriptor_t)
CAFFE_OPAQUE(cudnnRNNDescriptor_t)
CAFFE_OPAQUE(cudnnRNNDataDescriptor_t)
CAFFE_OPAQUE(cudnnSeqDataDescriptor_t)
CAFFE_OPAQUE(cudnnAttnDescriptor_t)
CAFFE_OPAQUE(cudnnCTCLossDescriptor_t)
CAFFE_OPAQUE(cudnnBackendDescriptor_t)
CAFFE_OPAQUE(ncclComm_t)
CAFFE_OPAQUE(nvrtcProgram)
#undef CAFFE_OPAQUE

// Enumerations. Their values are in no launch: only functions of the libraries take them.
#define CAFFE_CHOICE(name) enum name : int {};
#ifndef CAFFE_HOST_BACKEND
CAFFE_CHOICE(cublasStatus_t)
CAFFE_CHOICE(cublasOperation_t)
CAFFE_CHOICE(cublasFillMode_t)
CAFFE_CHOICE(cublasDiagType_t)
CAFFE_CHOICE(cublasSideMode_t)
CAFFE_CHOICE(cublasPointerMode_t)
CAFFE_CHOICE(cublasAtomicsMode_t)
CAFFE_CHOICE(cublasMath_t)
CAFFE_CHOICE(cublasComputeType_t)
CAFFE_CHOICE(cublasGemmAlgo_t)
#endif
CAFFE_CHOICE(cublasLtEpilogue_t)
CAFFE_CHOICE(cusparseStatus_t)
CAFFE_CHOICE(cusparseOperation_t)
CAFFE_CHOICE(cusparseIndexBase_t)
CAFFE_CHOICE(cusparseIndexType_t)
CAFFE_CHOICE(cusparseMatrixType_t)
CAFFE_CHOICE(cusparseOrder_t)
CAFFE_CHOICE(cusparseSpMVAlg_t)
CAFFE_CHOICE(cusparseSpMMAlg_t)
CAFFE_CHOICE(cusolverStatus_t)
CAFFE_CHOICE(cusolverEigMode_t)
CAFFE_CHOICE(cufftResult)
CAFFE_CHOICE(cufftType)
CAFFE_CHOICE(cudnnStatus_t)
CAFFE_CHOICE(cudnnDataType_t)
CAFFE_CHOICE(cudnnTensorFormat_t)
CAFFE_CHOICE(cudnnConvolutionMode_t)
CAFFE_CHOICE(cudnnActivationMode_t)
CAFFE_CHOICE(cudnnPoolingMode_t)
CAFFE_CHOICE(cudnnSoftmaxAlgorithm_t)
CAFFE_CHOICE(cudnnBatchNormMode_t)
CAFFE_CHOICE(cudnnNanPropagation_t)
CAFFE_CHOICE(cudnnConvolutionFwdAlgo_t)
CAFFE_CHOICE(cudnnConvolutionBwdDataAlgo_t)
CAFFE_CHOICE(cudnnConvolutionBwdFilterAlgo_t)
CAFFE_CHOICE(cudnnMathType_t)
CAFFE_CHOICE(cudnnRNNMode_t)
CAFFE_CHOICE(ncclResult_t)
CAFFE_CHOICE(ncclDataType_t)
CAFFE_CHOICE(ncclRedOp_t)
CAFFE_CHOICE(nvrtcResult)
#if !defined(__CUDACC__) && !defined(CAFFE_HOST_BACKEND)  // CUDA's own compilers have it
CAFFE_CHOICE(cudaDataType_t)
typedef cudaDataType_t cudaDataType;
#elif !defined(__CUDACC_RTC__)
#include <library_types.h>
#endif
#undef CAFFE_CHOICE
#ifndef CAFFE_HOST_BACKEND
typedef cublasStatus_t cublasStatus;
#endif
typedef cufftResult cufftResult_t;
typedef cufftType cufftType_t;

typedef int cufftHandle;
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuFloatComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;

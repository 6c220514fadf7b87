// The names of cuDNN's types, and nothing else of it. A fork's header may declare a layer for cuDNN beside others that do
// without it.
#pragma once

typedef struct cudnnContext* cudnnHandle_t;
typedef struct cudnnTensorStruct* cudnnTensorDescriptor_t;
typedef struct cudnnFilterStruct* cudnnFilterDescriptor_t;
typedef struct cudnnConvolutionStruct* cudnnConvolutionDescriptor_t;
typedef struct cudnnPoolingStruct* cudnnPoolingDescriptor_t;
typedef struct cudnnActivationStruct* cudnnActivationDescriptor_t;
typedef struct cudnnLRNStruct* cudnnLRNDescriptor_t;
typedef struct cudnnDropoutStruct* cudnnDropoutDescriptor_t;
typedef struct cudnnSpatialTransformerStruct* cudnnSpatialTransformerDescriptor_t;
typedef int cudnnConvolutionFwdAlgo_t;
typedef int cudnnConvolutionBwdFilterAlgo_t;
typedef int cudnnConvolutionBwdDataAlgo_t;
typedef int cudnnPoolingMode_t;

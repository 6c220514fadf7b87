// Stands where Caffe's test_caffe_main.cpp has its main(): the process is Python's.
#include <stdio.h>

#include <string>

#include "caffe/common.hpp"
#include "caffe/host_services.hpp"
#include "gtest/gtest.h"

namespace caffe {
cudaDeviceProp CAFFE_TEST_CUDA_PROP;
}
using caffe::CAFFE_TEST_CUDA_PROP;

extern "C" int caffe_layer_services(const caffe_services* services);

extern "C" int64_t caffe_test_run(const caffe_services* services, const char* filter, const char* xml_path,
                                  int device, void* stream) {
  caffe_layer_services(services);
  caffe::call_context.device = device;
  caffe::call_context.stream = stream;
  const int index = device < 0 ? 0 : device;
  CUDA_CHECK(cudaSetDevice(index));
  CUDA_CHECK(cudaGetDeviceProperties(&CAFFE_TEST_CUDA_PROP, index));
  std::string name = "caffetest", filter_flag = std::string("--gtest_filter=") + filter,
              output_flag = std::string("--gtest_output=xml:") + xml_path;
  char* arguments[] = {&name[0], &filter_flag[0], &output_flag[0], nullptr};
  int count = 3;
  ::testing::InitGoogleTest(&count, arguments);
  const int status = RUN_ALL_TESTS();
  fflush(stdout);
  return status;
}

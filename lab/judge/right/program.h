// What the programs of this folder have alike: arrays with numbers, and the lines that they print.
#pragma once
#include <cstdio>
#include <vector>

// Whole numbers from -8 to 7, so that sums are exact in any order.
template <class T>
T* given(int count, unsigned seed = 1) {
  std::vector<T> host(count);
  for (auto& one : host) {
    seed = seed * 1664525u + 1013904223u;
    one = T(int(seed >> 28) - 8);
  }
  T* device;
  cudaMalloc(&device, count * sizeof(T));
  cudaMemcpy(device, host.data(), count * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}

// The array, as a sum, a sum by places, and 8 of its elements.
template <class T>
void shown(const T* device, int count) {
  std::vector<T> host(count);
  cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost);
  double sum = 0, places = 0;
  for (int i = 0; i < count; ++i) {
    sum += double(host[i]);
    places += double(host[i]) * (i % 97 + 1);
  }
  printf("%.5g %.5g\n", sum, places);
  for (int i = 0; i < 8; ++i) printf("%.4g ", double(host[i * (count - 1) / 7]));
  printf("\n");
}

// Names of HDF5 that the solvers' snapshots call. compare.py makes no snapshots.
#pragma once
#include "caffe/solver.hpp"

using hid_t = int;
enum { H5F_ACC_TRUNC, H5F_ACC_RDONLY, H5P_DEFAULT };
template <typename... Any>
hid_t H5Fcreate(Any...) {
  return 0;
}
template <typename... Any>
hid_t H5Fopen(Any...) {
  return 0;
}
template <typename... Any>
hid_t H5Gcreate2(Any...) {
  return 0;
}
template <typename... Any>
hid_t H5Gopen2(Any...) {
  return 0;
}
template <typename... Any>
int H5LTfind_dataset(Any...) {
  return 0;
}
inline int H5Fclose(hid_t) { return 0; }
inline int H5Gclose(hid_t) { return 0; }

namespace caffe {
inline void hdf5_save_int(hid_t, const string&, int) {}
inline void hdf5_save_string(hid_t, const string&, const string&) {}
inline int hdf5_load_int(hid_t, const string&) { return 0; }
inline string hdf5_load_string(hid_t, const string&) { return ""; }
inline int hdf5_get_num_links(hid_t) { return 0; }
template <typename Dtype>
void hdf5_save_nd_dataset(hid_t, const string&, const Blob<Dtype>&) {}
template <typename Dtype>
void hdf5_load_nd_dataset(hid_t, const char*, int, int, Blob<Dtype>*) {}
}  // namespace caffe

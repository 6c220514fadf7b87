// If several layers read a blob, a Split layer copies it, so that each reader has its own diff.
#ifndef CAFFE_UTIL_INSERT_SPLITS_HPP_
#define CAFFE_UTIL_INSERT_SPLITS_HPP_

#include <string>

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Copies `param`, and adds a Split layer after each top that is used more than once: by bottoms, or
// by the loss.
void InsertSplits(const NetParameter& param, NetParameter* param_split);

void ConfigureSplitLayer(const std::string& layer_name, const std::string& blob_name, int blob_idx,
                         int split_count, float loss_weight, LayerParameter* split_layer_param);

std::string SplitLayerName(const std::string& layer_name, const std::string& blob_name, int blob_idx);

std::string SplitBlobName(const std::string& layer_name, const std::string& blob_name, int blob_idx,
                          int split_idx);

}  // namespace caffe

#endif  // CAFFE_UTIL_INSERT_SPLITS_HPP_

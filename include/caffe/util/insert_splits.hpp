// A blob that several layers read is copied by a Split layer, so that each reader has a diff of its own.
#ifndef CAFFE_UTIL_INSERT_SPLITS_HPP_
#define CAFFE_UTIL_INSERT_SPLITS_HPP_

#include <string>

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// `param` with a Split layer behind each top that more than one bottom (or a bottom and the loss) uses.
void InsertSplits(const NetParameter& param, NetParameter* param_split);

void ConfigureSplitLayer(const std::string& layer_name, const std::string& blob_name, int blob_idx,
                         int split_count, float loss_weight, LayerParameter* split_layer_param);

std::string SplitLayerName(const std::string& layer_name, const std::string& blob_name, int blob_idx);

std::string SplitBlobName(const std::string& layer_name, const std::string& blob_name, int blob_idx,
                          int split_idx);

}  // namespace caffe

#endif  // CAFFE_UTIL_INSERT_SPLITS_HPP_

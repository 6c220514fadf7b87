// SSD's label maps as std::map. Templates, because the message LabelMap is in the fork's own .proto.
#pragma once

#include "caffe/common.hpp"

namespace caffe {

template <typename Key, typename Value>
void map_label(const Key& key, const Value& value, bool strict, std::map<Key, Value>* found) {
  CHECK(!strict || !found->count(key)) << "the label map has " << key << " twice";
  (*found)[key] = value;
}

template <typename LabelMap>
bool MapNameToLabel(const LabelMap& map, bool strict, std::map<string, int>* labels) {
  labels->clear();
  for (const auto& item : map.item()) map_label<string, int>(item.name(), item.label(), strict, labels);
  return true;
}

template <typename LabelMap>
bool MapLabelToName(const LabelMap& map, bool strict, std::map<int, string>* names) {
  names->clear();
  for (const auto& item : map.item()) map_label<int, string>(item.label(), item.name(), strict, names);
  return true;
}

template <typename LabelMap>
bool MapLabelToDisplayName(const LabelMap& map, bool strict, std::map<int, string>* names) {
  names->clear();
  for (const auto& item : map.item())
    map_label<int, string>(item.label(), item.display_name(), strict, names);
  return true;
}

}  // namespace caffe

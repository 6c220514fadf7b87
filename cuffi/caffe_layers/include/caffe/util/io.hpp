// Messages in files, and temporary files. There are no images: `port` refuses layers that need OpenCV.
#ifndef CAFFE_UTIL_IO_H_
#define CAFFE_UTIL_IO_H_

#include <iomanip>

#include "boost/filesystem.hpp"
#include "caffe/common.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/util/format.hpp"
#include "caffe/util/label_map.hpp"

namespace caffe {

using boost::filesystem::path;

void MakeTempDir(string* temp_dirname);
void MakeTempFilename(string* temp_filename);

bool ReadProtoFromTextFile(const char* filename, Message* proto);
bool ReadProtoFromBinaryFile(const char* filename, Message* proto);
void WriteProtoToTextFile(const Message& proto, const char* filename);
void WriteProtoToBinaryFile(const Message& proto, const char* filename);

inline bool ReadProtoFromTextFile(const string& filename, Message* proto) {
  return ReadProtoFromTextFile(filename.c_str(), proto);
}
inline bool ReadProtoFromBinaryFile(const string& filename, Message* proto) {
  return ReadProtoFromBinaryFile(filename.c_str(), proto);
}
inline void ReadProtoFromTextFileOrDie(const string& filename, Message* proto) {
  CHECK(ReadProtoFromTextFile(filename, proto)) << "Failed to parse " << filename;
}
inline void ReadProtoFromBinaryFileOrDie(const string& filename, Message* proto) {
  CHECK(ReadProtoFromBinaryFile(filename, proto)) << "Failed to parse " << filename;
}
inline void WriteProtoToTextFile(const Message& proto, const string& filename) {
  WriteProtoToTextFile(proto, filename.c_str());
}
inline void WriteProtoToBinaryFile(const Message& proto, const string& filename) {
  WriteProtoToBinaryFile(proto, filename.c_str());
}

}  // namespace caffe

#endif  // CAFFE_UTIL_IO_H_

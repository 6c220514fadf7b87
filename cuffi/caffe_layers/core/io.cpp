// Messages in files. Python's protobuf converts text, so text needs a process with Python.
#include "caffe/util/io.hpp"

#include <atomic>
#include <filesystem>

#include "caffe/proto/text_format.hpp"

namespace caffe {

void MakeTempDir(string* temp_dirname) {
  const path model = boost::filesystem::temp_directory_path() / "caffe_test.%%%%-%%%%";
  for (int attempt = 0; attempt < 100; ++attempt) {
    const path directory = boost::filesystem::unique_path(model);
    if (boost::filesystem::create_directory(directory)) {
      *temp_dirname = directory.string();
      return;
    }
  }
  LOG(FATAL) << "Failed to create a temporary directory.";
}

void MakeTempFilename(string* temp_filename) {
  static const string directory = [] {
    string name;
    MakeTempDir(&name);
    return name;
  }();
  static std::atomic<int> next{0};
  *temp_filename = (path(directory) / format_int(next++, 9)).string();
}

// Caffe is started in its tree. So a prototxt may name files by paths that begin there.
static string missing(const string& filename) {
  const bool begins_here = std::filesystem::path(filename).is_relative();
  return "File not found: " + filename +
         (begins_here ? " in " + std::filesystem::current_path().string() : "");
}

bool ReadProtoFromTextFile(const char* filename, Message* proto) {
  std::ifstream file(filename);
  CHECK(file) << missing(filename);
  std::ostringstream text;
  text << file.rdbuf();
  return google::protobuf::TextFormat::ParseFromString(text.str(), proto);
}

bool ReadProtoFromBinaryFile(const char* filename, Message* proto) {
  std::ifstream file(filename, std::ios::binary);
  CHECK(file) << missing(filename);
  return proto->ParseFromIstream(&file);
}

// If it cannot write, it goes on, as in Caffe: some layers write a log to a path that exists only on their
// author's machine.
void WriteProtoToTextFile(const Message& proto, const char* filename) {
  std::ofstream file(filename);
  if (file) file << proto.DebugString();
  if (!file.flush()) LOG(WARNING) << "Failed to write " << filename;
}

void WriteProtoToBinaryFile(const Message& proto, const char* filename) {
  std::ofstream file(filename, std::ios::binary);
  CHECK(proto.SerializeToOstream(&file)) << "Failed to write " << filename;
}

}  // namespace caffe

// Sends log lines to the host's log service, and throws fatal ones as exceptions.
#include <ctype.h>
#include <glog/logging.h>
#include <stdio.h>
#include <stdlib.h>

#include <exception>

#include "caffe/host_services.hpp"

namespace google {
namespace {

struct CheckText {
  std::string text;
};
thread_local CheckText last_check;

// Is it NOT_IMPLEMENTED's text, or a layer's own text with that meaning: "CPU Forward not yet implemented", or
// CHECK(false) without a text?
bool says_not_implemented(std::string text) {
  for (char& c : text) c = static_cast<char>(tolower(c));
  const auto has = [&](const char* words) { return text.find(words) != std::string::npos; };
  if (text.rfind("not implemented", 0) == 0) return true;
  if (text == "check failed: false " || text == "check failed: 0 ") return true;
  return (has("not implemented") || has("not yet implemented")) && (has("cpu") || has("gpu"));
}

bool same_string(const char* a, const char* b, bool fold_case) {
  if (!a || !b) return a == b;
  return (fold_case ? strcasecmp(a, b) : strcmp(a, b)) == 0;
}

}  // namespace

bool log_wanted(int severity) {
  static const bool info = [] {
    const char* level = getenv("CAFFE_LOG");
    return level && strcasecmp(level, "info") == 0;
  }();
  return severity > INFO || info;
}

LogMessage::~LogMessage() {
  if (!log_wanted(severity_)) return;
  std::string text = stream_.str();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (caffe::host_services.log) {
    caffe::host_services.log(severity_, text.c_str());
  } else {
    fprintf(stderr, "%c %s\n", "IWE"[severity_], text.c_str());
  }
}

FatalMessage::FatalMessage(const char* file, int line, const std::string& text)
    : file_(file), line_(line), unwinding_(std::uncaught_exceptions()) {
  stream_ << text;
}

FatalMessage::~FatalMessage() noexcept(false) {
  if (std::uncaught_exceptions() > unwinding_) return;  // an operand of << threw, and its exception says more
  const char* slash = strrchr(file_, '/');
  std::string text = stream_.str();
  if (text.empty()) text = "LOG(FATAL), without a text";
  const std::string what = std::string(slash ? slash + 1 : file_) + ":" + std::to_string(line_) + ": " + text;
  if (says_not_implemented(text)) throw caffe::NotImplemented(what);
  throw caffe::Fatal(what);
}

void set_check_failure(const char* words, const std::string& left, const std::string& right) {
  last_check.text = std::string("Check failed: ") + words + " (" + left + " vs. " + right + ") ";
}

std::string check_failure() { return std::move(last_check.text); }

template bool check_failed<int, int>(const char*, const int&, const int&);
template bool check_failed<int, size_t>(const char*, const int&, const size_t&);
template bool check_failed<size_t, int>(const char*, const size_t&, const int&);
template bool check_failed<size_t, size_t>(const char*, const size_t&, const size_t&);
template bool check_failed<int64_t, int>(const char*, const int64_t&, const int&);

bool check_strings(const char* a, const char* b, bool equal, bool fold_case, const char* words) {
  if (same_string(a, b, fold_case) == equal) return true;
  set_check_failure(words, a ? a : "(null)", b ? b : "(null)");
  return false;
}

}  // namespace google

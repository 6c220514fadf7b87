// glog's macros that Caffe code uses. A fatal one throws caffe::Fatal with glog's text, and does not
// end the process.
#pragma once

#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <ostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

#include "caffe/fatal.hpp"

namespace google {

const int INFO = 0, WARNING = 1, ERROR = 2, FATAL = 3;
const int GLOG_INFO = INFO, GLOG_WARNING = WARNING, GLOG_ERROR = ERROR, GLOG_FATAL = FATAL;
typedef int LogSeverity;

// INFO lines are logged only with CAFFE_LOG=info, because layers log many of them at set up.
bool log_wanted(int severity);

// One line. The destructor, at the statement's end, passes it to host_services.log.
class LogMessage {
 public:
  explicit LogMessage(int severity) : severity_(severity) {}
  ~LogMessage();
  std::ostream& stream() { return stream_; }

 private:
  const int severity_;
  std::ostringstream stream_;
};

// The destructor throws, at the statement's end, when the message is complete.
class FatalMessage {
 public:
  FatalMessage(const char* file, int line, const std::string& text);
  ~FatalMessage() noexcept(false);
  std::ostream& stream() { return stream_; }

 private:
  const char* const file_;
  const int line_;
  const int unwinding_;  // uncaught exceptions at the start: one more means that an operand of << threw
  std::ostringstream stream_;
};

// Makes a stream expression void, because the other operand of ?: is (void)0.
struct Voidify {
  void operator&(std::ostream&) const {}
};

template <typename T, typename = void>
struct IsStreamable : std::false_type {};
template <typename T>
struct IsStreamable<T, std::void_t<decltype(std::declval<std::ostream&>() << std::declval<const T&>())>>
    : std::true_type {};

template <typename T>
void print_operand(std::ostream& out, const T& value) {
  if constexpr (std::is_same_v<T, std::nullptr_t>) {
    out << "nullptr";
  } else if constexpr (IsStreamable<T>::value) {
    out << value;
  } else if constexpr (std::is_enum_v<T>) {
    out << static_cast<long long>(value);
  } else {
    out << "(unprintable)";
  }
}

// Keeps the text of the CHECK_xx that failed in this thread, for the next FatalMessage.
void set_check_failure(const char* words, const std::string& left, const std::string& right);
std::string check_failure();

template <typename A, typename B>
[[gnu::cold, gnu::noinline]] bool check_failed(const char* words, const A& a, const B& b) {
  std::ostringstream left, right;
  print_operand(left, a);
  print_operand(right, b);
  set_check_failure(words, left.str(), right.str());
  return false;
}

// Most CHECKs use these instantiations, which are compiled once, in core/logging.cpp.
extern template bool check_failed<int, int>(const char*, const int&, const int&);
extern template bool check_failed<int, size_t>(const char*, const int&, const size_t&);
extern template bool check_failed<size_t, int>(const char*, const size_t&, const int&);
extern template bool check_failed<size_t, size_t>(const char*, const size_t&, const size_t&);
extern template bool check_failed<int64_t, int>(const char*, const int64_t&, const int&);

// The overload for int takes values, because static constants without definitions and unnamed enums cannot
// bind to references.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"  // Caffe compares its int counts with size() everywhere
#define CAFFE_DEFINE_CHECK_(name, op)                                   \
  template <typename A, typename B>                                     \
  inline bool check_##name(const A& a, const B& b, const char* words) { \
    return (a op b) ? true : check_failed(words, a, b);                 \
  }                                                                     \
  inline bool check_##name(int a, int b, const char* words) {           \
    return (a op b) ? true : check_failed(words, a, b);                 \
  }
CAFFE_DEFINE_CHECK_(EQ, ==)
CAFFE_DEFINE_CHECK_(NE, !=)
CAFFE_DEFINE_CHECK_(LE, <=)
CAFFE_DEFINE_CHECK_(LT, <)
CAFFE_DEFINE_CHECK_(GE, >=)
CAFFE_DEFINE_CHECK_(GT, >)
#undef CAFFE_DEFINE_CHECK_
#pragma GCC diagnostic pop

bool check_strings(const char* a, const char* b, bool equal, bool fold_case, const char* words);

template <typename T>
T&& check_not_null(const char* file, int line, const char* words, T&& pointer) {
  if (pointer == nullptr) FatalMessage(file, line, words);
  return std::forward<T>(pointer);
}

inline void InitGoogleLogging(const char*) {}
inline void InstallFailureSignalHandler() {}
inline void ShutdownGoogleLogging() {}
inline void FlushLogFiles(int) {}
inline void SetLogDestination(int, const char*) {}
inline void SetStderrLogging(int) {}

}  // namespace google

// Every macro is one expression, as in glog. So it also works in an if-else without braces, and in ?:.
#define CAFFE_FATAL_(text) ::google::FatalMessage(__FILE__, __LINE__, text).stream()
#define CAFFE_STREAM_INFO ::google::LogMessage(::google::INFO).stream()
#define CAFFE_STREAM_WARNING ::google::LogMessage(::google::WARNING).stream()
#define CAFFE_STREAM_ERROR ::google::LogMessage(::google::ERROR).stream()
#define CAFFE_STREAM_FATAL CAFFE_FATAL_("")
#define CAFFE_STREAM_DFATAL CAFFE_STREAM_ERROR
#define CAFFE_WANTED_INFO ::google::log_wanted(::google::INFO)
#define CAFFE_WANTED_WARNING true
#define CAFFE_WANTED_ERROR true
#define CAFFE_WANTED_FATAL true
#define CAFFE_WANTED_DFATAL true

// If INFO is off, its operands are not evaluated, because they may copy a blob from the device.
#define CAFFE_LOG_INFO !CAFFE_WANTED_INFO ? (void)0 : ::google::Voidify() & CAFFE_STREAM_INFO
#define CAFFE_LOG_WARNING CAFFE_STREAM_WARNING
#define CAFFE_LOG_ERROR CAFFE_STREAM_ERROR
#define CAFFE_LOG_FATAL CAFFE_STREAM_FATAL
#define CAFFE_LOG_DFATAL CAFFE_STREAM_DFATAL
#define LOG(severity) CAFFE_LOG_##severity
#define LOG_IF(severity, condition) \
  !((condition) && CAFFE_WANTED_##severity) ? (void)0 : ::google::Voidify() & CAFFE_STREAM_##severity
#define LOG_ASSERT(condition) CHECK(condition)

// True at the first of every n visits of this statement, or at the first n visits.
#define CAFFE_VISIT_(n, rule)                \
  [](long long every) {                      \
    static std::atomic<long long> visits{0}; \
    const long long visit = visits++;        \
    return rule;                             \
  }(n)
#define LOG_IF_EVERY_N(severity, condition, n) \
  LOG_IF(severity, (condition) && CAFFE_VISIT_(n, every > 0 && visit % every == 0))
#define LOG_EVERY_N(severity, n) LOG_IF_EVERY_N(severity, true, n)
#define LOG_FIRST_N(severity, n) LOG_IF(severity, CAFFE_VISIT_(n, visit < every))

#define VLOG_IS_ON(level) ((level) <= 0)
#define VLOG(level) LOG_IF(INFO, VLOG_IS_ON(level))
#define VLOG_IF(level, condition) LOG_IF(INFO, VLOG_IS_ON(level) && (condition))
#define PLOG(severity) LOG(severity)

#define CHECK(condition) \
  (condition) ? (void)0 : ::google::Voidify() & CAFFE_FATAL_("Check failed: " #condition " ")
#define PCHECK(condition) \
  (condition)             \
      ? (void)0           \
      : ::google::Voidify() & CAFFE_FATAL_("Check failed: " #condition " ") << strerror(errno) << " "
#define CHECK_ERR(invocation) PCHECK((invocation) != -1)

// `passed` evaluates each operand once. If it is false, it has set this thread's failure text.
#define CAFFE_CHECK_(passed) \
  (passed) ? (void)0 : ::google::Voidify() & CAFFE_FATAL_(::google::check_failure())
#define CHECK_EQ(a, b) CAFFE_CHECK_(::google::check_EQ(a, b, #a " == " #b))
#define CHECK_NE(a, b) CAFFE_CHECK_(::google::check_NE(a, b, #a " != " #b))
#define CHECK_LE(a, b) CAFFE_CHECK_(::google::check_LE(a, b, #a " <= " #b))
#define CHECK_LT(a, b) CAFFE_CHECK_(::google::check_LT(a, b, #a " < " #b))
#define CHECK_GE(a, b) CAFFE_CHECK_(::google::check_GE(a, b, #a " >= " #b))
#define CHECK_GT(a, b) CAFFE_CHECK_(::google::check_GT(a, b, #a " > " #b))
#define CHECK_OP(name, op, a, b) CAFFE_CHECK_(::google::check##name(a, b, #a " " #op " " #b))
#define CHECK_STREQ(a, b) CAFFE_CHECK_(::google::check_strings(a, b, true, false, #a " == " #b))
#define CHECK_STRNE(a, b) CAFFE_CHECK_(::google::check_strings(a, b, false, false, #a " != " #b))
#define CHECK_STRCASEEQ(a, b) CAFFE_CHECK_(::google::check_strings(a, b, true, true, #a " == " #b))
#define CHECK_STRCASENE(a, b) CAFFE_CHECK_(::google::check_strings(a, b, false, true, #a " != " #b))
#define CHECK_NEAR(a, b, margin) \
  CAFFE_CHECK_(::google::check_LE(std::fabs((a) - (b)), margin, "|" #a " - " #b "| <= " #margin))
#define CHECK_DOUBLE_EQ(a, b) CHECK_NEAR(a, b, 1e-15)
#define CHECK_FLOAT_EQ(a, b) CHECK_NEAR(a, b, 1e-6)
#define CHECK_INDEX(i, array) CHECK((i) < sizeof(array) / sizeof((array)[0]))
#define CHECK_NOTNULL(pointer) \
  ::google::check_not_null(__FILE__, __LINE__, "Check failed: '" #pointer "' Must be non NULL ", (pointer))

// As in Caffe's release builds, DCHECK and DLOG do nothing, but their operands must compile.
#ifdef DEBUG
#define DLOG(severity) LOG(severity)
#define DLOG_IF(severity, condition) LOG_IF(severity, condition)
#define DCHECK(condition) CHECK(condition)
#define DCHECK_NOTNULL(pointer) CHECK_NOTNULL(pointer)
#define CAFFE_DCHECK_(check) check
#else
#define DLOG(severity) LOG_IF(severity, false)
#define DLOG_IF(severity, condition) LOG_IF(severity, false && (condition))
#define DCHECK(condition) CHECK(true || (condition))
#define DCHECK_NOTNULL(pointer) (pointer)
#define CAFFE_DCHECK_(check) true ? (void)0 : check
#endif
#define DVLOG(level) DLOG_IF(INFO, VLOG_IS_ON(level))
#define DLOG_EVERY_N(severity, n) DLOG_IF(severity, (n) > 0)
#define DCHECK_EQ(a, b) CAFFE_DCHECK_(CHECK_EQ(a, b))
#define DCHECK_NE(a, b) CAFFE_DCHECK_(CHECK_NE(a, b))
#define DCHECK_LE(a, b) CAFFE_DCHECK_(CHECK_LE(a, b))
#define DCHECK_LT(a, b) CAFFE_DCHECK_(CHECK_LT(a, b))
#define DCHECK_GE(a, b) CAFFE_DCHECK_(CHECK_GE(a, b))
#define DCHECK_GT(a, b) CAFFE_DCHECK_(CHECK_GT(a, b))

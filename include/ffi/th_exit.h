// Included before each file of an extension, in which the build wrote th_exit for exit: it must not end Python.
#ifndef TH_EXIT_INC
#define TH_EXIT_INC

#ifdef __cplusplus
extern "C" {
#endif
// Leaves the call, as a C++ exception.
__attribute__((noreturn, format(printf, 1, 2))) void th_fail(const char* format, ...);
#ifdef __cplusplus
}
#endif
#define th_exit(status) th_fail("%s:%d: exit(%d)", __FILE__, __LINE__, (int)(status))

#endif

// Which function: its place in the lists of functions.cu. Of those that round: 4 times that, and the mode: 0 to nearest,
// 1 towards 0, 2 down, 3 up.
int functions_unary_float(int which, const float* x, float* y, int64_t count, void* stream);
int functions_unary_double(int which, const double* x, double* y, int64_t count, void* stream);
int functions_norms(const double* x, double* top, int64_t count, void* stream);
int functions_rounded_float(int which, const float* x, const float* y, const float* z, float* top,
                            int64_t count, void* stream);
int functions_rounded_double(int which, const double* x, const double* y, const double* z, double* top,
                             int64_t count, void* stream);
int functions_integer_of_float(int which, const float* x, int64_t* y, int64_t count, void* stream);
int functions_integer_of_double(int which, const double* x, int64_t* y, int64_t count, void* stream);
int functions_real_of_integer(int which, const int64_t* x, double* y, int64_t count, void* stream);
int functions_bits(int which, const int64_t* x, const int64_t* y, const int64_t* z, int64_t* top,
                   int64_t count, void* stream);

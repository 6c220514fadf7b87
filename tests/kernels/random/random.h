// top [threads, count]: row i are the numbers of sequence i, from `offset` on. kind: 0 uniform, 1 normal,
// 2 log normal, 3 (double alone) uniform by a Philox state
int random_float(int kind, int64_t seed, int64_t offset, float* top, int64_t threads, int64_t count,
                 void* stream);
int random_double(int kind, int64_t seed, int64_t offset, double* top, int64_t threads, int64_t count,
                  void* stream);
// top [threads, count]: 32 bits each, as int64, after `skip` numbers left out; some of them four at once
int random_bits(int64_t seed, int64_t offset, int64_t skip, int64_t* top, int64_t threads, int64_t count,
                void* stream);

// in, out and the like: [count] of dtype, in the backend's memory
int vectors_relu(const void* in, void* out, int count, int dtype, void* stream);
int vectors_early_return(const void* in, void* out, int count, int dtype, void* stream);
int vectors_broken_off(const void* in, void* out, int count, int dtype, void* stream);
// bias: may be NULL.
int vectors_optional(const void* in, const void* bias, int has_bias, void* out, int count, int dtype,
                     void* stream);
int vectors_conditional_write(const void* in, void* out, int count, int dtype, void* stream);
int vectors_skipped(const void* in, void* out, int count, int dtype, void* stream);
int vectors_accumulated(const void* in, void* out, int count, int dtype, void* stream);
int vectors_two_writes(const void* in, void* out, void* other, int count, int dtype, void* stream);
int vectors_read_after_write(const void* in, void* out, int count, int dtype, void* stream);
int vectors_per_channel(const void* in, const void* scale, int dim, int channels, void* out, int count,
                        int dtype, void* stream);
int vectors_neighbour(const void* in, void* out, int count, int dtype, void* stream);
int vectors_reversed_write(const void* in, void* out, int count, int dtype, void* stream);
int vectors_inner_loop(const void* in, void* out, int count, int dtype, void* stream);
int vectors_moved_pointer(const void* in, void* out, int count, int dtype, void* stream);
int vectors_changed_index(const void* in, void* out, int count, int dtype, void* stream);
int vectors_kept_plain(const void* in, void* out, int count, int dtype, void* stream);
int vectors_no_loop(const void* in, void* out, int count, int dtype, void* stream);
int vectors_mixed_types(const void* in, const int32_t* at, double* out, int64_t count, int blocks,
                        int threads, int dtype, void* stream);

// in, out and the like: [count] of dtype, in the backend's memory
int streams_relu(const void* in, void* out, int count, int dtype, void* stream);
int streams_early_return(const void* in, void* out, int count, int dtype, void* stream);
int streams_broken_off(const void* in, void* out, int count, int dtype, void* stream);
int streams_optional(const void* in, const void* bias, int has_bias, void* out, int count, int dtype,
                     void* stream);
int streams_conditional_write(const void* in, void* out, int count, int dtype, void* stream);
int streams_skipped(const void* in, void* out, int count, int dtype, void* stream);
int streams_accumulated(const void* in, void* out, int count, int dtype, void* stream);
int streams_two_writes(const void* in, void* out, void* other, int count, int dtype, void* stream);
int streams_read_after_write(const void* in, void* out, int count, int dtype, void* stream);
int streams_per_channel(const void* in, const void* scale, int dim, int channels, void* out, int count,
                        int dtype, void* stream);
int streams_neighbour(const void* in, void* out, int count, int dtype, void* stream);
int streams_reversed_write(const void* in, void* out, int count, int dtype, void* stream);
int streams_inner_loop(const void* in, void* out, int count, int dtype, void* stream);
int streams_moved_pointer(const void* in, void* out, int count, int dtype, void* stream);
int streams_changed_index(const void* in, void* out, int count, int dtype, void* stream);
int streams_kept_plain(const void* in, void* out, int count, int dtype, void* stream);
int streams_no_loop(const void* in, void* out, int count, int dtype, void* stream);
int streams_mixed_types(const void* in, const int32_t* at, double* out, int64_t count, int blocks,
                        int threads, int dtype, void* stream);

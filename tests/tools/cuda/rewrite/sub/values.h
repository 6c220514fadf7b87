// Bare declarations, fit for extern "C".
typedef struct values *values_handle;
#define HEADER_VALUE 3

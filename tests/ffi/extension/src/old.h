// The processor's functions: every type, and what headers of that time had.
int old_fill(THFloatTensor* out, long rows, long columns, float value);
void old_nothing(void);
int old_types(THDoubleTensor* d, THIntTensor* i, THLongTensor* l, THByteTensor* b, THHalfTensor* h);
int old_scale(THFloatTensor*, THFloatTensor*, float);
double old_mean(THDoubleTensor* values, bool squared);
int old_transposed(THFloatTensor* in, THFloatTensor* out);
int old_temporaries(THLongTensor* order, THLongTensor* out);
int old_error(int kind, THFloatTensor* tensor);
size_t old_words(const char* text, unsigned char small, int* memory);
int old_defined_later(int number);

// top: [threads of the grid][12]: each thread writes its four triples at its own place
int indexing_triples(int* top, int gx, int gy, int gz, int bx, int by, int bz, void* stream);

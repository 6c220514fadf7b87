// As torch had it until 1.10.
#include <TH/TH.h>

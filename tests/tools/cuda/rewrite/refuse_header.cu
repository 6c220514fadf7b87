// error: 1: inline PTX
#include "sub/refused.cuh"

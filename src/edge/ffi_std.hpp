// The headers that every wrapper of build_ffi.py includes. Only for precompilation.
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <exception>
#include <type_traits>

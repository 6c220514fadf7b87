// For layers that include Windows's header of this name: the functions that they use.
#pragma once

#include <unistd.h>

#define _access access

// error: 2: the host has no <mma.h>
#include "mma.h"

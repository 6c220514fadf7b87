// error: 2: the host has no <cooperative_groups.h>
#include <cooperative_groups.h>

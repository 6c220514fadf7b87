// error: 2: cooperative groups
#include <cooperative_groups.h>

// Part of cooperative_groups.h on the host.
#pragma once

#include "../cooperative_groups.h"

// Part of thrust on the host.
#pragma once

#include "all_of_thrust.h"

// Part of cub on the host.
#pragma once

#include "../cub.cuh"

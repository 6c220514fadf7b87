// Part of cuda_pipeline_primitives.h on the host.
#pragma once

#include "cuda_pipeline_primitives.h"

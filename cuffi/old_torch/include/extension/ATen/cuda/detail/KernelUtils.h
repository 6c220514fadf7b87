#pragma once
#include <aten/cuda.h>
#include <aten/dispatch.h>

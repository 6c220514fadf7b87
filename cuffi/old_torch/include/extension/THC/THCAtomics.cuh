#pragma once
#include <aten/atomics.h>
#include <aten/thc.h>

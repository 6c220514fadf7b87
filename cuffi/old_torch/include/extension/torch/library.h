#pragma once
#include <aten/library.h>

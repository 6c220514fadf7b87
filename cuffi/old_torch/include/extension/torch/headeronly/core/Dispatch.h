#pragma once
#include <aten/stable.h>

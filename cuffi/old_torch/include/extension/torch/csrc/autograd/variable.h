#pragma once
#include <aten/autograd.h>

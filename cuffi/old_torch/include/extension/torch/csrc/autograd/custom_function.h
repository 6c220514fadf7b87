#pragma once
#include <aten/autograd.h>
#include <aten/library.h>

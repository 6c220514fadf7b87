#pragma once
#include <aten/autograd.h>
#include <aten/dispatch.h>
#include <aten/library.h>

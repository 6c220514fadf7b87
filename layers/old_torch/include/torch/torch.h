#pragma once
#include <aten/dispatch.h>
#include <aten/library.h>

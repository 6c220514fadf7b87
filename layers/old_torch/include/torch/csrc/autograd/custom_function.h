#pragma once
#include <aten/bind.h>
#include <aten/dispatch.h>

// For layers that include Windows's header of this name: the functions that they use.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#define _mkdir(path) mkdir(path, 0777)
#define _getcwd getcwd

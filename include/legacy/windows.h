// For layers that include Windows's <direct.h> or <io.h>: the functions that they use.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#define _access access
#define _mkdir(path) mkdir(path, 0777)
#define _getcwd getcwd

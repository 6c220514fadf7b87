// For layers that include Windows's header of this name: the functions that they use.
#ifndef CAFFE_LEGACY_DIRECT_H_
#define CAFFE_LEGACY_DIRECT_H_

#include <sys/stat.h>
#include <unistd.h>

#define _mkdir(path) mkdir(path, 0777)
#define _getcwd getcwd

#endif  // CAFFE_LEGACY_DIRECT_H_

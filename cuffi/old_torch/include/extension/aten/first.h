// What each file that includes torch's headers includes first on the host, precompiled (make/torch_library.py): all that
// does not depend on the operations that the extension names.
#pragma once
#include <aten/value.h>
#include <cuda_runtime.h>

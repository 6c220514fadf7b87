// The operations that the extension names, as aten_declarations.py declares them. Included twice: AT_METHODS within
// at::Tensor, AT_FUNCTIONS in namespace at. The runtime needs none.
#if __has_include("aten_operations.inc")
#include "aten_operations.inc"
#endif

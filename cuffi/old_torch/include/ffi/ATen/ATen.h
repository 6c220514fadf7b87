// PyTorch 0.4: extensions of torch.utils.ffi in C++ took their THCState from ATen. The rest of ATen is not here.
#pragma once

#include <THC/THC.h>

namespace at {

struct Context {
  THCState* thc_state;  // the functions of THC ask the call instead
  THCState* getTHCState() { return thc_state; }
  THCState* lazyInitCUDA() { return thc_state; }
};

inline Context& globalContext() {
  static Context context = {nullptr};
  return context;
}

}  // namespace at

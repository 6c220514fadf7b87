"""Extensions of torch.utils.ffi (2017, 2018): their build scripts, their C functions, their autograd Functions."""

"""The processor replaces the GPU for a script that needs one."""

from support.workshop import Fork

SCRIPT = """
import torch
from cuffi.old_torch.ffi import processor
assert not processor.stands_in
processor.stand_in()
x = torch.arange(3.0)
assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
assert x.cuda() is x and x.is_cuda and x.get_device() == 0 and x.device.type == "cpu"
linear = torch.nn.Linear(3, 2)
assert linear.cuda(0) is linear
torch.cuda.synchronize(), torch.cuda.set_device(3), torch.cuda.empty_cache()
assert torch.cuda.FloatTensor([1, 2]).tolist() == [1, 2] and torch.cuda.LongTensor is torch.LongTensor
print(processor.stands_in)
"""


def test_code_that_asks_for_a_gpu_has_the_processor():
    fork = Fork(SCRIPT)
    output, errors = fork.communicate()
    assert fork.returncode == 0 and output == "True\n", errors
    assert "there is no GPU: this script uses the processor" in errors

"""Every layer's cases: autocast, modules, threads and processes."""

import copy
import inspect
import pickle
import threading

import pytest
import torch
from support.layers import (
    module_and_call,
    of_module,
)
from support.points import (
    differentiable,
    random_like,
    same_bits,
)
from torch import Tensor

from cuffi.runtime.cases import Draw, cast, results


def autocast_dtypes(point):
    return [d for d in (torch.bfloat16, torch.float16) if d in point.layer_object.dtypes]


def as_autocast_casts(point, arguments, dtype):
    """The arguments, all in the dtype except those that autocast does not cast."""
    names = inspect.signature(point.case.function).parameters
    rounded = cast(arguments, dtype, point.device)
    kept = zip(names, arguments, rounded, strict=False)
    return tuple(a if name in point.case.stays_float else r for name, a, r in kept)


def test_autocast(each_device):
    """The result has the case's dtype; the gradients have their arguments' dtypes."""
    case, grad = each_device.case, each_device.case.gradient != "none"
    for dtype in autocast_dtypes(each_device):
        arguments = each_device.arguments(grad)
        with torch.autocast(each_device.device, dtype=dtype):
            result = each_device.call(*arguments)
        wanted = dtype if case.autocast == "lower" else each_device.dtype
        assert {t.dtype for t in differentiable(results(result))} == {wanted}
        rounded = as_autocast_casts(each_device, arguments, wanted)
        assert same_bits(result, each_device.call(*rounded))
        if grad:
            diffs = torch.autograd.grad(
                differentiable(results(result)), differentiable(arguments), random_like(result)
            )
            assert [d.dtype for d in diffs] == [a.dtype for a in differentiable(arguments)]


@pytest.mark.only(lambda case: len(differentiable(next(iter(case.inputs.values()))(Draw()))) > 1)
def test_autocast_mixed(each_device):
    """Autocast brings arguments of different dtypes to one dtype."""
    for dtype in autocast_dtypes(each_device):
        arguments = each_device.arguments()
        first = next(i for i, a in enumerate(arguments) if isinstance(a, Tensor) and a.is_floating_point())
        mixed = tuple(a.to(dtype) if i == first else a for i, a in enumerate(arguments))
        with torch.autocast(each_device.device, dtype=dtype):
            result = each_device.call(*mixed)
        wanted = dtype if each_device.case.autocast == "lower" else each_device.dtype
        assert same_bits(result, each_device.call(*as_autocast_casts(each_device, mixed, wanted)))


# --------------------------------------------------------------------------------------------- modules


@of_module
def test_module_equals_function(each_dtype):
    module, given = module_and_call(each_dtype)
    assert same_bits(module(*given), each_dtype.call(*each_dtype.arguments()))


@of_module
def test_module_copies(on_cpu):
    """deepcopy, pickle and state_dict give a module that computes the same."""
    module, given = module_and_call(on_cpu)
    other = on_cpu.case.module().to(on_cpu.dtype)
    other.load_state_dict(module.state_dict())
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), other):
        assert twin is not module and type(twin) is type(module)
        assert same_bits(twin(*given), module(*given))
    assert repr(module)


# ------------------------------------------------------------------------------- threads and processes


def test_two_threads(each_device):
    """Each with its own data, one of them making errors: neither disturbs the other."""
    wanted = {seed: each_device.call(*each_device.arguments(seed=seed)) for seed in (1, 2)}
    problems = []

    def work(seed):
        try:
            arguments = each_device.arguments(seed=seed)
            for _ in range(50):
                if seed == 2:
                    with pytest.raises(TypeError):
                        each_device.call(*(a + 1j if isinstance(a, Tensor) else a for a in arguments))
                if not same_bits(each_device.call(*arguments), wanted[seed]):
                    problems.append(f"thread {seed} computed something else")
        except BaseException as error:
            problems.append(repr(error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not problems and not any(thread.is_alive() for thread in threads)


class Samples(torch.utils.data.Dataset):
    """A data set that calls a layer, as an augmentation would."""

    def __init__(self, point):
        self.point = point

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return results(self.point.call(*self.point.arguments(seed=index)))[0]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_process(on_cpu):
    """A DataLoader's worker, forked after its parent has called the layer, calls it too."""
    wanted = [results(on_cpu.call(*on_cpu.arguments(seed=index)))[0] for index in (0, 1)]
    loader = torch.utils.data.DataLoader(
        Samples(on_cpu), batch_size=None, num_workers=1, multiprocessing_context="fork", timeout=60
    )
    assert same_bits(list(loader), wanted)

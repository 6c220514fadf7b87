"""Pooling: the maximum or average of windows, and pyramids of it.

Pooling: the maximum or average of windows.
SPP: a pyramid of grids.
"""

import math

import torch
import torch.nn.functional as F

from . import StockDefinition, StockLayer, nothing_left

# ------------------------------------------------------------------------------------------------ Pooling

_LEAST = -3.4028234663852886e38  # the initial value of the maximum


class Pooling(StockLayer):
    """Maximum or average of windows of kernel x kernel.

    Bottom: [N, C, H, W]. Top: [N, C, ceil((H + 2 pad - kernel) / stride) + 1, ...], without a last window that
    begins in the padding; round_mode FLOOR rounds down. An average divides by the window's area, padding included.
    For MAX, a second top has the maxima's positions in the map. STOCHASTIC: in training one value, drawn with
    probability proportional to its size; in testing the mean weighted in the same way.

    Source: BVLC's pooling_layer.cpp.
    """

    tops = (1, 2)
    understands = ("pooling_param.ceil_mode",)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.pooling_param
        self.method = {0: "MAX", 1: "AVE", 2: "STOCHASTIC"}[p.pool]
        self.whole = p.global_pooling
        self.kernel = pair(self, p, "kernel", "kernel_size", 0)
        self.stride, self.pad = pair(self, p, "stride", "stride", 1), pair(self, p, "pad", "pad", 0)
        self.ceil = p.round_mode == 0 and definition.flag("pooling_param.ceil_mode", True)
        if self.whole:
            sized = p.HasField("kernel_size") or p.HasField("kernel_h") or p.HasField("kernel_w")
            self.check(not sized, "with global_pooling the kernel's size cannot be given")
            plain = self.pad == (0, 0) and self.stride == (1, 1)
            self.check(plain, "with global_pooling: pad 0 and stride 1")
        else:
            self.check(min(*self.kernel, *self.stride) > 0, "kernel and stride: expected more than 0")
            inside = self.pad[0] < self.kernel[0] and self.pad[1] < self.kernel[1]
            self.check(inside, f"pad {self.pad} is not less than the kernel {self.kernel}")
        self.check(self.top_count == 1 or self.method == "MAX", "only MAX has a second top, the mask")
        self._as_torch = self._has_torchs_windows()

    def setup(self, x):
        axes = "4 axes, corresponding to (num, channels, height, width)"
        self.check(len(x) == 4, f"input must have {axes}, not {list(x)}")
        if not self.whole:
            self.check(all(self.sizes(x)), nothing_left(x, self.kernel))

    def sizes(self, shape) -> tuple[int, int]:
        """How many windows there are down and across."""
        return self._windows(int(shape[2]), 0), self._windows(int(shape[3]), 1)

    def forward(self, x):
        if self.whole:
            return self._globally(x)
        if self.method == "STOCHASTIC":
            return self._stochastic(x, self.sizes(x.shape))
        if not self._as_torch:
            return self._by_hand(x, self.sizes(x.shape))
        if self.method == "AVE":
            return F.avg_pool2d(x, self.kernel, self.stride, self.pad, self.ceil, True)
        if self.top_count == 1:
            return F.max_pool2d(x, self.kernel, self.stride, self.pad, 1, self.ceil)
        top, mask = F.max_pool2d(x, self.kernel, self.stride, self.pad, 1, self.ceil, return_indices=True)
        return top, mask.to(_exact(x))

    # ------------------------------------------------------------------------------------- windows

    def _windows(self, size: int, i: int) -> int:
        rounded = math.ceil if self.ceil else math.floor
        count = rounded((size + 2 * self.pad[i] - self.kernel[i]) / self.stride[i]) + 1
        # A last window that begins in the padding is dropped. Caffe checks this only if there is padding.
        if any(self.pad) and (count - 1) * self.stride[i] >= size + self.pad[i]:
            count -= 1
        return max(count, 0)

    def _has_torchs_windows(self) -> bool:
        """Does torch have the same windows for every size of the bottom?

        In ceil mode torch always drops a last window that begins after the bottom; Caffe does so only with padding.
        Without padding there is such a window if the stride is longer than the kernel. Torch does not accept a pad of
        more than half a kernel.
        """
        small = all(2 * pad <= kernel for pad, kernel in zip(self.pad, self.kernel, strict=True))
        near = all(stride <= kernel for stride, kernel in zip(self.stride, self.kernel, strict=True))
        return small and (not self.ceil or any(self.pad) or near)

    # ------------------------------------------------------------------------------------- methods

    def _globally(self, x):
        if self.method == "AVE":
            return x.mean((2, 3), keepdim=True)
        if self.method == "STOCHASTIC":
            return self._stochastic(x, (1, 1))
        top, mask = x.flatten(2).max(2)
        top = top[..., None, None]
        return top if self.top_count == 1 else (top, mask[..., None, None].to(_exact(x)))

    def _covered(self, x, windows, value: float):
        """The bottom, padded or cut to the area that the windows cover."""
        (top, left), (down, across) = self.pad, (self._reach(i, windows[i]) for i in range(2))
        return F.pad(x, (left, across - left - x.shape[3], top, down - top - x.shape[2]), value=value)

    def _reach(self, i: int, count: int) -> int:
        return (count - 1) * self.stride[i] + self.kernel[i]

    def _by_hand(self, x, windows):
        if self.method == "AVE":
            sums = F.avg_pool2d(self._covered(x, windows, 0.0), self.kernel, self.stride, divisor_override=1)
            down, across = (self._extents(x, i, windows[i]) for i in range(2))
            return sums / (down[:, None] * across[None, :])
        covered = self._covered(x, windows, _LEAST)
        top, at = F.max_pool2d(covered, self.kernel, self.stride, return_indices=True)
        if self.top_count == 1:
            return top
        width = self._reach(1, windows[1])
        row, column = at // width - self.pad[0], at % width - self.pad[1]
        inside = (row >= 0) & (row < x.shape[2]) & (column >= 0) & (column < x.shape[3])
        return top, torch.where(inside, row * x.shape[3] + column, -1).to(_exact(x))

    def _extents(self, x, i: int, count: int):
        """How long each window is, cut off at the end of the padding."""
        size = x.shape[2 + i]
        begin = torch.arange(count, device=x.device, dtype=x.dtype) * self.stride[i] - self.pad[i]
        return (begin + self.kernel[i]).clamp(max=size + self.pad[i]) - begin

    def _stochastic(self, x, windows):
        """Training draws one value per window, with the values as weights; testing computes the mean with these
        weights.
        """
        kernel = tuple(x.shape[2:]) if self.whole else self.kernel
        covered = x if self.whole else self._covered(x, windows, 0.0)
        items = x.shape[0] * x.shape[1]
        columns = F.unfold(covered.reshape(items, 1, *covered.shape[2:]), kernel, stride=self.stride)
        if self.training:
            flat = columns.detach().transpose(1, 2).reshape(-1, columns.shape[1])
            flat = torch.where((flat.sum(1, keepdim=True) > 0), flat, 1.0)
            drawn = torch.multinomial(flat, 1).reshape(items, 1, -1)
            top = columns.gather(1, drawn)
        else:
            total = columns.sum(1)
            top = columns.square().sum(1) / torch.where(total > 0, total, 1.0)
        return top.reshape(*x.shape[:2], *windows)


def pair(layer: StockLayer, p, name: str, both: str, default: int) -> tuple[int, int]:
    """Down and across, as a pooling_param gives them: `name`_h and `name`_w, or one for both."""
    if p.HasField(f"{name}_h") or p.HasField(f"{name}_w"):
        layer.check(not p.HasField(both), f"{both}: either {both} or {name}_h and {name}_w")
        return getattr(p, f"{name}_h"), getattr(p, f"{name}_w")
    size = getattr(p, both) if p.HasField(both) else default
    return size, size


def _exact(x):
    """The dtype of a mask, because half precision cannot represent all indices."""
    return torch.promote_types(x.dtype, torch.float32)


# ---------------------------------------------------------------------------------------------------- SPP


class SPP(StockLayer):
    """Spatial pyramid pooling: pyramid_height grids of 1, 2, 4, ... windows per side, concatenated in one row.

    Bottom: [N, C, H, W]. Top: [N, C * (1 + 4 + 16 + ...)].

    Source: BVLC's spp_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.spp_param
        self.levels, self._definition = p.pyramid_height, definition
        self.method = p.pool
        self.check(self.levels > 0, "pyramid_height: expected more than 0")

    def setup(self, x):
        is_valid = len(x) == 4 and min(x[2:]) > 0
        self.check(is_valid, f"a bottom [num, channels, height, width] is needed, not {list(x)}")
        pools = []
        for level in range(self.levels):
            message = type(self._definition.message)()
            p = message.pooling_param
            p.pool = self.method
            for letter, size in (("h", x[2]), ("w", x[3])):
                kernel = -(-size // 2**level)
                setattr(p, f"kernel_{letter}", kernel)
                setattr(p, f"stride_{letter}", kernel)
                setattr(p, f"pad_{letter}", (kernel * 2**level - size + 1) // 2)
            pools.append(Pooling(StockDefinition(f"{self.layer_name}, level {level}", message, 1, 1, {})))
            pools[-1].setup(x)
        del self._definition
        self.pools = torch.nn.ModuleList(pools)

    def forward(self, x):
        if self.levels == 1:
            return self.pools[0](x)
        return torch.cat([pool(x).flatten(1) for pool in self.pools], 1)

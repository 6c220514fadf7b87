"""Kernels of every kind (tests/fixtures/kernels), on the host and on the GPU, compared with plain Python."""

import math

import pytest
import torch
from support.halves import assert_same_floats, interesting_floats

from cuffi.runtime import CaffeRuntimeError


def ints(*shape, device, low=-100, high=100, dtype=torch.int32):
    generator = torch.Generator().manual_seed(3)
    return torch.randint(low, high, shape, generator=generator, dtype=torch.int64).to(device, dtype)


# ------------------------------------------------------------------------------------------ indexing


@pytest.mark.parametrize(
    "grid, block",
    [((3, 2, 4), (4, 3, 2)), ((1, 1, 1), (7, 5, 3)), ((5, 1, 2), (1, 1, 64)), ((2, 3, 1), (1, 1, 1))],
)
def test_three_dimensions(kernels, device, grid, block):
    def all_of(size):
        z, y, x = torch.meshgrid(*(torch.arange(s) for s in reversed(size)), indexing="ij")
        return torch.stack([x, y, z], -1).reshape(-1, 3)

    blocks, threads = all_of(grid), all_of(block)
    wanted = torch.cat(
        [
            threads.repeat(len(blocks), 1),
            blocks.repeat_interleave(len(threads), 0),
            torch.tensor([*block, *grid]).expand(len(blocks) * len(threads), 6),
        ],
        1,
    )
    top = torch.full(wanted.shape, -1, dtype=torch.int32, device=device)
    kernels["indexing"].indexing_triples(top, *grid, *block)
    assert torch.equal(top.cpu().long(), wanted)


@pytest.mark.parametrize(
    "grid, block, runs",
    [
        ((1, 1, 1), (32, 32, 1), True),
        ((1, 1, 1), (1, 16, 64), True),
        ((1, 65535, 1), (1, 1, 1), True),
        ((1, 1, 65535), (1, 1, 1), True),
        ((65537, 1, 1), (1, 1, 1), True),
        ((1, 1, 1), (41, 25, 1), False),
        ((1, 1, 1), (1, 1, 65), False),
        ((1, 65536, 1), (1, 1, 1), False),
        ((1, 1, 65536), (1, 1, 1), False),
        *((tuple(int(i != axis) for i in range(3)), (1, 1, 1), False) for axis in range(3)),
        *(((1, 1, 1), tuple(int(i != axis) for i in range(3)), False) for axis in range(3)),
    ],
)
def test_how_large_a_launch_may_be(kernels, device, grid, block, runs):
    """The limits of GPUs, at each limit, also on the host."""
    top = torch.full((math.prod(grid) * math.prod(block) + 1, 12), -1, dtype=torch.int32, device=device)
    if not runs:
        with pytest.raises(CaffeRuntimeError, match="kernel launch: cudaErrorInvalid"):
            kernels["indexing"].indexing_triples(top, *grid, *block)
        assert (top == -1).all()
        return
    kernels["indexing"].indexing_triples(top, *grid, *block)
    last = [n - 1 for n in (*block, *grid)]
    assert top[-2].tolist() == [*last, *block, *grid] and (top[-1] == -1).all() and (top[:-1] >= 0).all()


# ------------------------------------------------------------------------------------- shared memory


@pytest.mark.parametrize(
    "function, dtype",
    [
        ("shared_static", torch.float32),
        ("shared_dynamic", torch.float64),
        ("shared_file_scope", torch.int32),
        ("shared_file_scope_cast", torch.float32),
    ],
)
def test_shared_memory(kernels, device, function, dtype):
    bottom = ints(500, 64, device=device, dtype=dtype)
    top = torch.zeros_like(bottom)
    getattr(kernels["shared"], function)(bottom, top, bottom.numel())
    assert torch.equal(top, bottom.flip(1))


def test_a_kernel_has_48_kib_of_dynamic_shared_memory_until_it_asks_for_more(kernels, device):
    """This holds on the host as on a GPU. Another kernel keeps its limit."""
    shared, top = kernels["shared"], torch.zeros(40, device=device)

    def runs(kib, more=0):
        top.zero_()
        shared.shared_large(top, 40, (kib << 10) + more)
        return torch.equal(top.cpu(), (256.0 * kib + more // 4) * torch.arange(40))

    assert runs(48)
    with pytest.raises(CaffeRuntimeError, match="kernel launch: cudaErrorInvalid"):
        runs(48, more=4)
    for bytes in (-1, (227 << 10) + 1):  # more than a Hopper GPU has
        with pytest.raises(CaffeRuntimeError, match="cudaErrorInvalidValue"):
            shared.shared_allow(top, bytes)
    shared.shared_allow(top, 96 << 10)
    assert runs(96) and runs(48, more=4)
    with pytest.raises(CaffeRuntimeError, match="kernel launch: cudaErrorInvalid"):
        runs(96, more=4)
    shared.shared_modest(top.new_zeros(64), top.new_zeros(64), 47 << 10)
    with pytest.raises(CaffeRuntimeError, match="kernel launch: cudaErrorInvalid"):
        shared.shared_modest(top.new_zeros(64), top.new_zeros(64), 96 << 10)


# ------------------------------------------------------------------------------------------ barriers


def test_barrier_in_a_loop(kernels, device):
    bottom = ints(100, 256, device=device, dtype=torch.float32)
    top = torch.zeros(100, device=device)
    kernels["barriers"].barriers_tree_sum(bottom, top, 100)
    assert torch.equal(top, bottom.sum(1))


@pytest.mark.parametrize("alive, threads", [(100, 128), (1, 512), (32, 1024), (1024, 1024)])
def test_early_return_before_a_barrier(kernels, device, alive, threads):
    bottom = ints(threads, device=device)
    top = torch.full_like(bottom, -1000)
    kernels["barriers"].barriers_early_return(bottom, top, alive, threads)
    assert torch.equal(top[:alive], bottom[:alive].roll(-1))
    assert bool((top[alive:] == -1000).all())


@pytest.mark.parametrize("threads", [1, 40, 70, 96])
@pytest.mark.parametrize("below", [0, 1, 39, 77, 96])
def test_barrier_votes(kernels, device, below, threads):
    top = torch.full((3,), -1, dtype=torch.int32, device=device)
    kernels["barriers"].barriers_votes(top, below, threads)
    assert top.tolist() == [min(below, threads), int(below >= threads), int(below > 0)]


def test_threads_at_different_barriers(kernels):
    """This is a deadlock on a GPU. On the host it is an error that names the kernel, and later calls work."""
    barriers = kernels["barriers"]
    for blocks in (1, 300):  # the latter on several host threads
        with pytest.raises(
            RuntimeError,
            match=r"barriers: barriers_mismatch on host: kernel mismatch_kernel: .*different barriers",
        ):
            barriers.barriers_mismatch(torch.zeros(blocks, dtype=torch.int32), blocks)
        test_barrier_in_a_loop(kernels, "cpu")


@pytest.mark.parametrize(
    "function, places",
    [("branches", "line 59, column 5 and at line 61, column 5"), ("one_line", "column .* column")],
)
def test_barriers_in_the_branches_of_an_if(kernels, function, places):
    """CUDA allows them only where all threads of a block take one branch."""
    barriers = kernels["barriers"]
    barrier = getattr(barriers, f"barriers_{function}")
    for all_or_none in (0, 64):
        top = torch.zeros(64, dtype=torch.int32)
        barrier(top, all_or_none, 64)
        assert (top == 1).all()
    with pytest.raises(CaffeRuntimeError, match=f"wait at different barriers, at .*{places}"):
        barrier(top, 16, 64)
    test_barrier_in_a_loop(kernels, "cpu")


# ------------------------------------------------------------------------------------------- atomics


@pytest.mark.parametrize(
    "kind, dtype", [("float", torch.float32), ("double", torch.float64), ("int", torch.int32)]
)
def test_atomic_add(kernels, device, kind, dtype):
    """Blocks run in parallel, so a lost update would show as a smaller sum."""
    bottom = ints(1 << 20, device=device, low=0, high=8, dtype=dtype)
    top = torch.zeros(1, dtype=dtype, device=device)
    getattr(kernels["atomics"], f"atomics_add_{kind}")(bottom, top, bottom.numel())
    assert top.item() == bottom.double().sum().item()


def test_other_atomics(kernels, device):
    bottom = ints(1 << 17, device=device, low=-(2**30), high=2**30)
    top = torch.tensor([-(2**31), 2**31 - 1, 0], dtype=torch.int32, device=device)
    kernels["atomics"].atomics_others(bottom, top, bottom.numel())
    assert top.tolist() == [bottom.max().item(), bottom.min().item(), (bottom > 0).sum().item()]


# --------------------------------------------------------------------------------------------- warps


@pytest.mark.parametrize("blocks, function", [(1, "warp_all"), (3, "warp_all"), (3, "warp_old")])
def test_warp_intrinsics(kernels, device, blocks, function):
    threads = 96
    bottom = ints(threads, device=device, low=0, high=1010)
    bottom[:32] %= 1000  # one warp in which all are below 1000
    bottom[40], bottom[70] = 7, 1005
    top = torch.full((threads, 8), -1, dtype=torch.int32, device=device)
    getattr(kernels["warp"], function)(bottom, top, threads, blocks)
    for warp, values in enumerate(bottom.view(-1, 32).tolist()):
        ballot = sum(1 << lane for lane, value in enumerate(values) if value % 2)
        for lane, value in enumerate(values):
            wanted = [
                values[5],
                values[lane // 8 * 8 + 3],
                values[lane - 2] if lane >= 2 else value,
                values[lane + 3] if lane % 16 < 13 else value,
                values[lane ^ 1],
                ballot - (1 << 32) if ballot >= 1 << 31 else ballot,
                int(7 in values),
                int(max(values) < 1000),
            ]
            assert top[32 * warp + lane].tolist() == wanted, f"warp {warp}, lane {lane}"


@pytest.mark.parametrize("threads", [1, 31, 40, 70, 96])
@pytest.mark.parametrize("begin, end", [(0, 32), (0, 1), (0, 5), (0, 31), (3, 20), (31, 32)])
def test_warp_of_which_some_have_returned_or_never_were(kernels, device, begin, end, threads):
    """Barriers do not wait for these lanes, and their values do not count."""
    bottom = ints(threads, device=device, low=0, high=500) * 2 + (
        torch.arange(threads, device=device) % 5 == 0
    )
    lanes = torch.arange(threads, device=device) % 32
    bottom[(lanes < begin) | (lanes >= end)] = 1007
    bottom[32 + begin :][:1] = 7
    top = torch.full((threads, 6), -1, dtype=torch.int32, device=device)
    kernels["warp"].warp_early_return(bottom, top, begin, end, threads)

    def mask(lanes):
        return torch.tensor(sum(1 << lane for lane in lanes)).to(torch.int32).item()

    for warp, values in enumerate(bottom.cpu().split(32)):
        living = dict(list(enumerate(values.tolist()))[begin:end])
        odd = mask(lane for lane, value in living.items() if value % 2)
        wanted = [*list(living.values())[:1], odd, int(7 in living.values()), 1, mask(living), odd]
        found = top[32 * warp : 32 * warp + 32].tolist()
        assert found == [wanted if lane in living else [-1] * 6 for lane in range(len(values))]


@pytest.mark.parametrize("threads", [1, 20, 32])
def test_match_and_reduce(kernels, threads):
    bottom = ints(threads, device="cpu", low=-3, high=9)
    bottom[0] = 4
    top = torch.zeros(threads, 8, dtype=torch.int32)
    kernels["warp"].warp_match(bottom, top, threads)
    values = {lane: value for lane, value in enumerate(bottom.tolist()) if value >= 0}
    everyone, xor = sum(1 << lane for lane in values), 0
    for value in values.values():
        xor ^= value
    for lane, value in values.items():
        same = sum(1 << other for other, its in values.items() if its == value)
        said = [same, everyone, 1, sum(values.values()), min(values.values()), max(values.values()), xor, 1]
        assert top[lane].tolist() == [torch.tensor(n).to(torch.int32).item() for n in said]


@pytest.mark.parametrize("threads, delta", [(20, 4), (20, 16), (33, 1), (1, 3)])
def test_a_shuffle_from_a_lane_that_never_was(kernels, threads, delta):
    """CUDA leaves its value undefined. On the host it is the thread's own."""
    kernels["warp"].warp_partial(
        ints(64, device="cpu", low=1000, high=2000), ints(64, 4, device="cpu"), 64, 5
    )
    bottom, top = ints(threads, device="cpu"), ints(threads, 4, device="cpu")
    kernels["warp"].warp_partial(bottom, top, threads, delta)
    for at, own in enumerate(bottom.tolist()):
        warp, lane = at // 32 * 32, at % 32

        def of(source, own=own, warp=warp):
            return bottom[warp + source].item() if 0 <= source < 32 and warp + source < threads else own

        up = of(lane - delta) if lane - delta >= lane // 8 * 8 else own
        wanted = [of((at + delta) % 32), up, of(lane + delta), of(lane ^ delta)]
        assert top[at].tolist() == wanted, f"thread {at}"


@pytest.mark.parametrize("x, y, z", [(64, 1, 1), (1, 64, 1), (2, 4, 8), (8, 2, 6), (3, 8, 4)])
def test_warps_of_a_block_with_three_axes(kernels, device, x, y, z):
    top = torch.zeros(x * y * z, dtype=torch.int32, device=device)
    kernels["warp"].warp_box(top, x, y, z)
    assert top.tolist() == [t // 32 * 32 + 5 for t in range(x * y * z)]


def test_warp_sum(kernels, device):
    bottom = ints(256, device=device, dtype=torch.float64)
    top = torch.zeros(8, dtype=torch.float64, device=device)
    kernels["warp"].warp_sum(bottom, top, 256)
    assert torch.equal(top, bottom.view(8, 32).sum(1))


# --------------------------------------------------------------------------------------------- loops


@pytest.mark.parametrize("blocks", [0, 1, 7, 10000], ids=["as many as needed", "one", "few", "too many"])
@pytest.mark.parametrize("count", [0, 1, 511, 513, 200_001])
@pytest.mark.parametrize("function", ["loops_fill", "loops_fill_int"])
def test_any_grid_does_each_element_once(kernels, device, function, count, blocks):
    top = torch.zeros(count + 64, device=device)
    getattr(kernels["loops"], function)(top, count, blocks)
    assert torch.equal(top[:count].cpu(), 1.0 + torch.arange(count))
    assert not top[count:].any(), "written past the end"


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("blocks", [1, 7, 1000, 50_021])
def test_blocks_shared_among_threads(kernels, blocks, threads):
    """The blocks are tiny, and a few take long. A thread that has finished helps the others, and each block runs
    once.
    """
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        for _ in range(3):
            top = torch.zeros(blocks, dtype=torch.int32)
            kernels["loops"].loops_blocks(top, blocks, 3000)
            assert bool((top == 1).all()), (top != 1).nonzero().flatten()[:5]
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("grid", [(1, 1), (3, 2), (20, 20)])
def test_two_dimensional_loop(kernels, device, grid):
    rows, columns = 67, 129
    top = torch.zeros(rows, columns, device=device)
    kernels["loops"].loops_two(top, rows, columns, *grid)
    wanted = 1000.0 * torch.arange(rows)[:, None] + torch.arange(columns)
    assert torch.equal(top.cpu(), wanted)


BODIES = {
    "loops_own_parameters": lambda x: x * (1 + torch.arange(x.numel(), device=x.device)),
    "loops_moved_parameters": lambda x: x,
    "loops_changed_parameters": lambda x: x * (1 + torch.arange(x.numel(), device=x.device) % 3),
    "loops_return": lambda x: torch.where(x < 0, 0, x),
    "loops_break": lambda x: torch.where(x < 0, 0, x),
    "loops_continue": lambda x: torch.where(x < 0, 0, 2 * x),
    "loops_dangling_else": lambda x: torch.where(x < 0, -1.0, 1.0),
    "loops_default_arguments": lambda x: x * 3,
}


@pytest.mark.parametrize("count", [1, 1000, 70_000])
@pytest.mark.parametrize("function", BODIES)
def test_what_bodies_do(kernels, device, function, count):
    bottom = ints(count, device=device, dtype=torch.float32)
    top = torch.zeros_like(bottom)
    getattr(kernels["loops"], function)(bottom, top, count)
    assert torch.equal(top, BODIES[function](bottom))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("outputs", [(True, False), (False, True), (True, True), (False, False)], ids=str)
def test_null_arguments(kernels, device, bias, outputs):
    """None arrives in C as NULL."""
    bottom = ints(1000, device=device, dtype=torch.float32)
    given = torch.ones_like(bottom) if bias else None
    top, again = (torch.zeros_like(bottom) if wanted else None for wanted in outputs)
    kernels["loops"].loops_null(bottom, given, top, again, 1000)
    for output in (top, again):
        assert output is None or torch.equal(output, bottom + bias)


def test_in_place(kernels, device):
    top = ints(70_001, device=device, dtype=torch.float32)
    wanted = top * 2
    kernels["loops"].loops_in_place(top, top.numel())
    assert torch.equal(top, wanted)


# -------------------------------------------------------------------------------------------- halves


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_to_float(kernels, device, dtype):
    """All 65536 bit patterns."""
    patterns = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(dtype)
    top = torch.empty(65536, device=device)
    kernels["halves"].halves_decode(patterns.to(device), top, 65536)
    assert_same_floats(top.cpu(), patterns.float())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_float_to_half(kernels, device, dtype):
    floats = interesting_floats(dtype)
    top = torch.empty(floats.numel(), dtype=dtype, device=device)
    kernels["halves"].halves_encode(floats.to(device), top, floats.numel())
    assert_same_floats(top.cpu().float(), floats.to(dtype).float())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_cudas_half_types(kernels, device, dtype):
    """Each result is the exact one, rounded once: torch's, and for fma one in double."""
    generator = torch.Generator().manual_seed(5)
    x, y = (torch.randn(20_000, generator=generator).mul(8).to(dtype) for _ in range(2))
    top = torch.zeros(20_000, 9, dtype=dtype, device=device)
    kernels["halves"].halves_cuda(x.to(device), y.to(device), top, 20_000)
    wanted = [x + y, x - y, x * y, x / y, None, torch.maximum(x, y), torch.minimum(x, y), y + y]
    for column, value in enumerate(wanted):
        if value is not None:
            assert torch.equal(top[:, column].cpu(), value), column
    exact = x.double() * y.double() + x.double()
    spacing = (exact.abs() * torch.finfo(dtype).eps).clamp(
        min=torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    )
    assert ((top[:, 4].cpu().double() - exact).abs() <= spacing / 2).all()
    square = x.double() * x.double() + x.double()
    assert (
        (top[:, 8].cpu().double() - square).abs() <= square.abs() * torch.finfo(dtype).eps / 2 + 1e-7
    ).all()


# ------------------------------------------------------------------------------------------ the call


def test_temporary_lives_until_the_launch(kernels, device):
    """An argument nobody else holds is not freed, and its memory reused, before the kernel reads it."""
    for _ in range(20):
        top = torch.zeros(1 << 20, device=device)
        kernels["loops"].loops_continue(torch.full((1 << 20,), 3.0, device=device), top, 1 << 20)
        assert bool((top == 6).all())


# ---------------------------------------------------------------------------- random numbers in kernels

MASK = 2**32 - 1


def philox(counter: int, key: int) -> list[int]:
    """Philox4x32-10 of a counter of 128 bits and a key of 64 (Salmon et al., SC 2011): four times 32 bits."""
    x0, x1, x2, x3 = (counter >> shift & MASK for shift in (0, 32, 64, 96))
    k0, k1 = key & MASK, key >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * x0, 0xCD9E8D57 * x2
        x0, x1, x2, x3 = b >> 32 ^ x1 ^ k0, b & MASK, a >> 32 ^ x3 ^ k1, a & MASK
        k0, k1 = k0 + 0x9E3779B9 & MASK, k1 + 0xBB67AE85 & MASK
    return [x0, x1, x2, x3]


def test_philox_known_answers():
    """Random123's kat_vectors: the reference below is the paper's."""
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox(2**128 - 1, 2**64 - 1) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    pi = 0x0370734413198A2E85A308D3243F6A88, 0x299F31D0A4093822
    assert philox(*pi) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def bits(seed: int, sequence: int, first: int, count: int) -> list[int]:
    blocks = range(first // 4, (first + count) // 4 + 1)
    drawn = [x for block in blocks for x in philox(sequence << 64 | block, seed)]
    return drawn[first % 4 :][:count]


@pytest.mark.parametrize("offset, skip", [(0, 0), (3, 2), (5, 0), (2**34 - 2, 3)])
def test_curand_bits(kernels, device, offset, skip):
    threads, count, seed = 70, 13, 0x1234_5678_9ABC
    top = torch.zeros(threads, count, dtype=torch.int64, device=device)
    kernels["random"].random_bits(seed, offset, skip, top, threads, count)
    assert top.tolist() == [bits(seed, i, offset + skip, count) for i in range(threads)]


def test_curand_philox_uniform_double(kernels, device):
    """It takes one number, where a curandState takes two."""
    top = torch.zeros(50, 10, dtype=torch.float64, device=device)
    kernels["random"].random_double(3, 17, 1, top, 50, 10)
    drawn = torch.tensor([bits(17, i, 1, 10) for i in range(50)], dtype=torch.float64)
    assert torch.equal(top.cpu(), (drawn + 1) * 2.0**-32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["uniform", "normal", "log normal"])
def test_curand_numbers(kernels, device, kind, dtype):
    threads, count, seed, offset = 50, 10, 17, 1
    per = 1 if dtype == torch.float32 else 2  # numbers of 32 bits in one
    top = torch.zeros(threads, count, dtype=dtype, device=device)
    draw = getattr(kernels["random"], "random_float" if per == 1 else "random_double")
    draw(["uniform", "normal", "log normal"].index(kind), seed, offset, top, threads, count)

    drawn = torch.tensor([bits(seed, i, offset, count * per) for i in range(threads)], dtype=torch.int64)
    if per == 2:
        drawn = drawn[:, ::2] ^ drawn[:, 1::2] << 21
    width = 2.0 ** -(32 if per == 1 else 53)
    uniform = drawn.double() * width + width / 2
    if kind == "uniform":
        wanted = uniform
    else:
        length, angle = (-2 * uniform[:, ::2].log()).sqrt(), 2 * torch.pi * uniform[:, 1::2]
        wanted = torch.stack([length * angle.sin(), length * angle.cos()], -1).flatten(1)
        if kind == "log normal":
            wanted = (0.5 + 0.25 * wanted).exp()
    tolerance = 3e-6 if per == 1 else 1e-14
    torch.testing.assert_close(top.cpu().double(), wanted, rtol=tolerance, atol=tolerance)
    assert len(top.unique()) > 0.99 * top.numel()

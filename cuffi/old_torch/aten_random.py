"""Where in torch's sequence of random numbers a launch of an extension begins: (seed, offset), as for Philox.

On a GPU torch's generator counts. On the processor its generator has no such counter, so the place follows from the
generator's state alone: whatever sets that state (a seed, set_rng_state, fork_rng, a checkpoint) sets the place.
"""

import functools

import torch

# torch's state of the processor's generator, which is Lua torch's: a Mersenne twister's 624 words, in 64 bits each.
BYTES, WORDS, LEFT, HAS_BEGUN, NEXT, STATE = 5056, 624, 8, 12, 16, 24
# The most words that a launch takes out of the generator: then none of the first ones is left.
MOST_WORDS = WORDS + 1
# Another place in the sequence is none of the first 2 ** 32.
FAR = 1 << 62


def philox(count: int, where: torch.device) -> tuple[int, int]:
    """(seed, offset) for a launch whose threads take `count` random numbers each, as C++'s int64_t."""
    count = -(-count // 4) * 4
    if where.type == "cuda":
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        offset = generator.get_offset()
        generator.set_offset(offset + count)
        seed = generator.initial_seed()
    else:
        seed, offset = torch.initial_seed(), _taken(torch.default_generator, count)
    return seed - (1 << 64) * (seed >= 1 << 63), offset


def _taken(generator: torch.Generator, count: int) -> int:
    """The offset by the generator's state, which goes on by one word for four numbers.

    As long as only launches have taken its first words, that is a GPU's offset. Then it is a number that the generator
    draws.
    """
    words = _words_taken(generator)
    if words is None:
        drawn = torch.empty((), dtype=torch.int64).random_(0, FAR, generator=generator)
        return int(drawn.item()) // 4 * 4 + FAR
    torch.empty(min(count // 4, MOST_WORDS), dtype=torch.int32).random_(generator=generator)
    return 4 * words


def _words_taken(generator: torch.Generator) -> int | None:
    """How many words were drawn since the generator was seeded. None: more than it makes at once, or unknown."""
    state = generator.get_state()
    if len(state) != BYTES:
        return None
    left = state[LEFT:HAS_BEGUN].view(torch.int32).item()
    taken = state[NEXT:STATE].view(torch.int64).item()
    if left == 1 and taken == 0:
        return 0
    same = torch.equal(state[STATE : STATE + 8 * WORDS], _first_words(generator.initial_seed()))
    return int(taken) if same and left == WORDS - taken + 1 else None


@functools.lru_cache(maxsize=16)
def _first_words(seed: int) -> torch.Tensor:
    """The words that a generator with this seed makes at its first number."""
    generator = torch.Generator().manual_seed(seed)
    torch.empty(1, dtype=torch.int32).random_(generator=generator)
    return generator.get_state()[STATE : STATE + 8 * WORDS].clone()

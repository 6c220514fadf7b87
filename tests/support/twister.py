"""Boost's random numbers, drawn one by one."""

import random

UNIFORM, NORMAL, BERNOULLI, BITS = range(4)


def reference(seed):
    """Python's own Mersenne twister, seeded as boost's."""
    state = [seed]
    for i in range(1, 624):
        state.append(1812433253 * (state[-1] ^ state[-1] >> 30) + i & 0xFFFFFFFF)
    generator = random.Random()
    generator.setstate((3, (*state, 624), None))
    return lambda: generator.getrandbits(32)

"""random as Python 2.7 drew: of the same generator, shuffle, choice, sample and the like took int(random() * n)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from .literals import as_bytes

_WORD = (1 << 64) - 1


def old_hash(value) -> int:
    """hash(value) of Python 2.7 on a 64-bit machine. TypeError if it depended on an address."""
    if isinstance(value, bool | int):
        return hash(value) if abs(value) < (1 << 63) else _hash_of_long(value)
    if isinstance(value, str | bytes):
        return _hash_of_bytes(value if isinstance(value, bytes) else as_bytes(value))
    if isinstance(value, float):
        return _hash_of_float(value)
    if isinstance(value, tuple):
        return _hash_of_tuple(value)
    raise TypeError(f"random.seed({value!r}): Python 2 took the hash of an address; give a number or a text")


def _signed(word: int) -> int:
    word &= _WORD
    number = word - (1 << 64) if word >> 63 else word
    return -2 if number == -1 else number


def _hash_of_bytes(data: bytes) -> int:
    if not data:
        return 0
    word = data[0] << 7
    for byte in data:
        word = ((1000003 * word) ^ byte) & _WORD
    return _signed(word ^ len(data))


def _hash_of_long(value: int) -> int:
    word, size = 0, 30
    rest = abs(value)
    digits = []
    while rest:
        digits.append(rest & ((1 << size) - 1))
        rest >>= size
    for digit in reversed(digits):
        word = ((word << size) & _WORD) | (word >> (64 - size))
        word = (word + digit) & _WORD
        word += 1 if word < digit else 0
    return _signed(word if value > 0 else -word)


def _hash_of_float(value: float) -> int:
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return -271828 if value < 0 else 314159
    if value == int(value):
        return old_hash(int(value))
    part, exponent = math.frexp(value)
    part *= 2147483648.0
    high = int(part)
    part = (part - high) * 2147483648.0
    return _signed(high + int(part) + (exponent << 15))


def _hash_of_tuple(values: tuple) -> int:
    word, factor, count = 0x345678, 1000003, len(values)
    for place, value in enumerate(values):
        word = ((word ^ (old_hash(value) & _WORD)) * factor) & _WORD
        factor += 82520 + 2 * (count - place - 1)
    return _signed(word + 97531)


class Random(random.Random):
    """random.Random with Python 2.7's methods."""

    def seed(self, a=None, *_):  # ty: ignore[incompatible-method-override]
        if a is None or isinstance(a, int):
            return super().seed(a)
        return super().seed(old_hash(a) & _WORD)

    def randrange(self, start, stop=None, step=1, *_):
        first = int(start)
        if first != start:
            raise ValueError("non-integer arg 1 for randrange()")
        low, high = (0, first) if stop is None else (first, int(stop))
        count = len(range(low, high, int(step)))
        if count < 1:
            raise ValueError("empty range for randrange()")
        return low + int(step) * self._below(count)

    def _below(self, count: int) -> int:
        if count < 1 << 53:
            return int(self.random() * count)
        bits = int(1.00001 + math.log(count - 1, 2.0))
        drawn = self.getrandbits(bits)
        while drawn >= count:
            drawn = self.getrandbits(bits)
        return drawn

    def randint(self, a, b):
        return Random.randrange(self, a, b + 1)

    def choice(self, seq):
        return seq[int(self.random() * len(seq))]

    def shuffle(self, x, random=None):
        draw = random or self.random
        for i in reversed(range(1, len(x))):
            j = int(draw() * (i + 1))
            x[i], x[j] = x[j], x[i]

    def sample(self, population, k):  # ty: ignore[incompatible-method-override]
        n = len(population)
        if not 0 <= k <= n:
            raise ValueError("sample larger than population")
        large = 21 + (4 ** math.ceil(math.log(k * 3, 4)) if k > 5 else 0)
        if n <= large or hasattr(population, "keys"):
            return self._from_pool(list(population), k)
        if not hasattr(population, "__getitem__"):  # a set
            population = tuple(population)
        places, taken = [], set()
        for _ in range(k):
            place = int(self.random() * n)
            while place in taken:
                place = int(self.random() * n)
            taken.add(place)
            places.append(place)
        return [population[place] for place in places]

    def _from_pool(self, pool: list, k: int) -> list:
        found = []
        for i in range(k):
            place = int(self.random() * (len(pool) - i))
            found.append(pool[place])
            pool[place] = pool[len(pool) - i - 1]
        return found

    def triangular(self, low=0.0, high=1.0, mode=None):
        drawn, split = self.random(), 0.5 if mode is None else (mode - low) / (high - low)
        if drawn > split:
            drawn, split, low, high = 1.0 - drawn, 1.0 - split, high, low
        return low + (high - low) * (drawn * split) ** 0.5

    def paretovariate(self, alpha):
        return 1.0 / pow(1.0 - self.random(), 1.0 / alpha)

    def expovariate(self, lambd):
        return -math.log(1.0 - self.random()) / lambd

    def gammavariate(self, alpha, beta):
        if alpha != 1.0:
            return super().gammavariate(alpha, beta)
        drawn = self.random()
        while drawn <= 1e-7:
            drawn = self.random()
        return -math.log(drawn) * beta

    def betavariate(self, alpha, beta):
        drawn = self.gammavariate(alpha, 1.0)
        return 0.0 if drawn == 0 else drawn / (drawn + self.gammavariate(beta, 1.0))


class _Shared(Random):
    """The functions of the module random: they draw from its own generator, as other code of the process does."""

    def random(self):
        return random.random()

    def getrandbits(self, k):
        return random.getrandbits(k)

    def seed(self, a=None, *_):
        random.seed(a if a is None or isinstance(a, int) else old_hash(a) & _WORD)

    def getstate(self):
        return random.getstate()

    def setstate(self, state):
        random.setstate(state)

    def gauss(self, mu=0.0, sigma=1.0):
        return random.gauss(mu, sigma)


def names() -> dict[str, Any]:
    """What a file of Python 2 finds in the module random."""
    shared = _Shared.__new__(_Shared)
    functions: dict[str, Callable] = {
        name: getattr(shared, name) for name in random.__all__ if name[0].islower() and hasattr(shared, name)
    }
    return {**functions, "Random": Random, "__all__": list(random.__all__)}

"""The random numbers for which Caffe's tests were written: a Mersenne twister, read as boost did it until 1.55.

Some tests check a gradient by differences without excluding the kink of |x| or of a clip: with these inputs, drawn from
seed 1701, no value lies there; with other ones it may.
"""

import numpy

FLOATS = {0: numpy.float32, 1: numpy.float64}


class Twister:
    def __init__(self, seed: int = 1701):
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Set the seed for the next draw. Not now: gradient checks seed before every forward, and few draw."""
        self.state, self.start = None, seed & 0xFFFFFFFF

    def words(self, count: int) -> numpy.ndarray:
        """32 random bits each."""
        if self.state is None:
            self.state = numpy.random.RandomState(self.start)
        return self.state._bit_generator.random_raw(count).astype(numpy.uint64)

    def unit(self, count: int, dtype) -> numpy.ndarray:
        """Numbers in [0, 1). Those that round to 1 are drawn again."""
        values = numpy.empty(0, dtype)
        while len(values) < count:
            drawn = self.words(count - len(values)).astype(dtype) * dtype(2.0**-32)
            values = numpy.concatenate([values, drawn[drawn < 1]])
        return values

    def fill(self, kind: int, count: int, dtype: int, a: float, b: float) -> numpy.ndarray:
        """Fill a tensor. Kinds and dtypes are those of caffe_services.random (layer_record.h)."""
        if kind == 3:
            return self.words(count).astype(numpy.uint32)
        if kind == 2:
            return (self.words(count).astype(numpy.float64) <= a * 0xFFFFFFFF).astype(numpy.int32)
        real = FLOATS[dtype]
        if kind == 0:
            return (self.unit(count, real) * real(b - a) + real(a)).astype(real)
        return self._normal(count, real) * real(b) + real(a)

    def _normal(self, count: int, real) -> numpy.ndarray:
        """Box and Muller, two values from two draws."""
        first, second = self.unit(2 * ((count + 1) // 2), real).reshape(-1, 2).T
        length, angle = numpy.sqrt(real(-2) * numpy.log(real(1) - second)), real(2 * numpy.pi) * first
        pairs = numpy.stack([length * numpy.cos(angle), length * numpy.sin(angle)], 1)
        return pairs.reshape(-1)[:count].astype(real)

"""The types of forks, one value after the other, from their sources' definitions."""

import itertools
import math

import numpy as np


def c_round(value):
    return math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)


def bins_of(low, high, bins, size):
    """The pixels of each bin of a region's axis, ends included in the region."""
    extent = max(high - low + 1, 1) / bins
    for i in range(bins):
        begin = min(max(math.floor(i * extent) + low, 0), size)
        yield range(begin, min(max(math.ceil((i + 1) * extent) + low, 0), size))


def roi_pooling(x, regions, pooled, scale):
    """(top, for each of its values the place of its maximum or None)."""
    top = np.zeros((len(regions), x.shape[1], *pooled))
    places = {}
    for n, (item, left, up, right, down) in enumerate(regions):
        left, up, right, down = (c_round(v * scale) for v in (left, up, right, down))
        rows = list(bins_of(up, down, pooled[0], x.shape[2]))
        columns = list(bins_of(left, right, pooled[1], x.shape[3]))
        for c, i, j in itertools.product(range(x.shape[1]), range(pooled[0]), range(pooled[1])):
            cells = list(itertools.product(rows[i], columns[j]))
            if cells:
                best = max(cells, key=lambda cell: (x[(int(item), c, *cell)], [-v for v in cell]))
                top[n, c, i, j] = x[(int(item), c, *best)]
                places[n, c, i, j] = (int(item), c, *best)
    return top, places


def psroi_pooling(x, regions, outputs, group, scale):
    top = np.zeros((len(regions), outputs, group, group))
    for n, (item, *corners) in enumerate(regions):
        left, up, right, down = (c_round(v) for v in corners)
        spans = []
        for low, high, size in ((up, down, x.shape[2]), (left, right, x.shape[3])):
            first, extent = low * scale, max((high + 1) * scale - low * scale, 0.1) / group
            ends = [
                (math.floor(i * extent + first), math.ceil((i + 1) * extent + first)) for i in range(group)
            ]
            spans.append([slice(min(max(a, 0), size), min(max(b, 0), size)) for a, b in ends])
        for c, i, j in itertools.product(range(outputs), range(group), range(group)):
            part = x[int(item), (c * group + i) * group + j, spans[0][i], spans[1][j]]
            top[n, c, i, j] = part.mean() if part.size else 0
    return top


def overlap(a, b):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    area = [(c[2] - c[0]) * (c[3] - c[1]) if c[2] >= c[0] and c[3] >= c[1] else 0 for c in (a, b)]
    return width * height / (sum(area) - width * height)


def decode(code, prior, variance, offset):
    d = [v * o for v, o in zip(variance, offset, strict=True)]
    width, height = prior[2] - prior[0], prior[3] - prior[1]
    if code == "CORNER":
        return [p + o for p, o in zip(prior, d, strict=True)]
    if code == "CORNER_SIZE":
        return [p + o * s for p, o, s in zip(prior, d, (width, height) * 2, strict=True)]
    x, y = (prior[0] + prior[2]) / 2 + d[0] * width, (prior[1] + prior[3]) / 2 + d[1] * height
    half = math.exp(d[2]) * width / 2, math.exp(d[3]) * height / 2
    return [x - half[0], y - half[1], x + half[0], y + half[1]]


def suppressed(boxes, order, threshold, eta=1.0):
    """The numbers of the boxes that stay, of those in `order`, the best first."""
    kept = []
    for i in order:
        if all(overlap(boxes[i], boxes[k]) <= threshold for k in kept):
            kept.append(i)
            threshold *= eta if threshold > 0.5 else 1
    return kept


def detection_output(offsets, scores, priors, variances, code, shared, top_k, keep, least, threshold, eta):
    """offsets [N, P, classes or 1, 4], scores [N, P, C]; class 0 is the background."""
    rows = []
    for n in range(len(offsets)):
        found = []
        for c in range(1, scores.shape[2]):
            own = offsets[n, :, 0 if shared else c]
            boxes = [decode(code, p, v, o) for p, v, o in zip(priors, variances, own, strict=True)]
            order = [i for i in np.argsort(-scores[n, :, c], kind="stable") if scores[n, i, c] > least]
            order = order[:top_k] if top_k >= 0 else order
            found += [(c, scores[n, i, c], boxes[i]) for i in suppressed(boxes, order, threshold, eta)]
        if 0 <= keep < len(found):
            found = sorted(sorted(found, key=lambda f: -f[1])[:keep], key=lambda f: (f[0], -f[1]))
        rows += [[n, c, score, *box] for c, score, box in found]
    return np.array(rows or [[n, *[-1.0] * 6] for n in range(len(offsets))])[None, None]


def prior_box(cells, image, low, high, ratios, flip, clip, variance, step, offset):
    """[1, 2, boxes * 4] for cells (rows, columns) and an image (height, width)."""
    kinds = []
    for i, size in enumerate(map(int, low)):
        kinds.append((size, size))
        if high:
            kinds.append((math.sqrt(size * int(high[i])),) * 2)
        for ratio in ratios:
            for r in (ratio, 1 / ratio) if flip else (ratio,):
                kinds.append((size * math.sqrt(r), size / math.sqrt(r)))
    boxes = []
    for row, column in itertools.product(range(cells[0]), range(cells[1])):
        x, y = (
            (place + offset) * (step or image[1 - i] / cells[1 - i]) for i, place in enumerate((column, row))
        )
        for width, height in kinds:
            box = (x - width / 2) / image[1], (y - height / 2) / image[0]
            box += (x + width / 2) / image[1], (y + height / 2) / image[0]
            boxes += [min(max(v, 0), 1) if clip else v for v in box]
    return np.array([[boxes, list(variance) * (len(boxes) // 4)]])


def interpolated(x, size):
    """Bilinear, with corners that stay corners."""
    top = np.zeros((*x.shape[:2], *size))
    for i, j in itertools.product(range(size[0]), range(size[1])):
        place = [
            k * (have - 1) / (want - 1) if want > 1 else 0.0
            for k, have, want in zip((i, j), x.shape[2:], size, strict=True)
        ]
        (y, dy), (z, dz) = ((int(p), p - int(p)) for p in place)
        y1, z1 = min(y + 1, x.shape[2] - 1), min(z + 1, x.shape[3] - 1)
        above = x[:, :, y, z] * (1 - dz) + x[:, :, y, z1] * dz
        below = x[:, :, y1, z] * (1 - dz) + x[:, :, y1, z1] * dz
        top[:, :, i, j] = above * (1 - dy) + below * dy
    return top

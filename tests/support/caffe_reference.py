"""Stock Caffe's layers once more, in plain Python loops over numpy arrays of doubles: what the torch modules are
compared with. Written from the definitions, with no torch operator that computes the same.
"""

import math

import numpy as np

LEAST = -3.4028234663852886e38


def windows(size, kernel, stride, pad, padded, ceil=True):
    """How many pooling windows there are. padded: whether either axis has padding."""
    count = (size + 2 * pad - kernel) / stride
    count = (math.ceil(count) if ceil else math.floor(count)) + 1
    return count - 1 if padded and (count - 1) * stride >= size + pad else count


def pooling(x, method, kernel, stride=(1, 1), pad=(0, 0), ceil=True):
    items, channels, height, width = x.shape
    down, across = (
        windows(s, k, t, p, any(pad), ceil)
        for s, k, t, p in zip(x.shape[2:], kernel, stride, pad, strict=True)
    )
    top, mask = np.empty((items, channels, down, across)), np.full((items, channels, down, across), -1.0)
    for n, c, i, j in np.ndindex(top.shape):
        begin = i * stride[0] - pad[0], j * stride[1] - pad[1]
        end = min(begin[0] + kernel[0], height + pad[0]), min(begin[1] + kernel[1], width + pad[1])
        area = (end[0] - begin[0]) * (end[1] - begin[1])
        best, total = LEAST, 0.0
        for h in range(max(begin[0], 0), min(end[0], height)):
            for w in range(max(begin[1], 0), min(end[1], width)):
                total += x[n, c, h, w]
                if x[n, c, h, w] > best:
                    best, mask[n, c, i, j] = x[n, c, h, w], h * width + w
        top[n, c, i, j] = best if method == "MAX" else total / area if area else math.nan
    return (top, mask) if method == "MAX" else (top, None)


def lrn(x, size, alpha, beta, k, within):
    top, half = np.empty_like(x), (size - 1) // 2
    for n, c, h, w in np.ndindex(x.shape):
        total = 0.0
        if within:
            for i in range(h - half, h + half + 1):
                for j in range(w - half, w + half + 1):
                    if 0 <= i < x.shape[2] and 0 <= j < x.shape[3]:
                        total += x[n, c, i, j] ** 2
            scale = 1 + alpha * total / size**2
        else:
            for i in range(max(0, c - half), min(x.shape[1], c + half + 1)):
                total += x[n, i, h, w] ** 2
            scale = k + alpha / size * total
        top[n, c, h, w] = x[n, c, h, w] * scale**-beta
    return top


def convolution(x, weight, bias, stride, pad, dilation, group):
    """x [n, c, h, w], weight [out, c / group, kh, kw]"""
    out, _, kh, kw = weight.shape
    height = (x.shape[2] + 2 * pad - dilation * (kh - 1) - 1) // stride + 1
    width = (x.shape[3] + 2 * pad - dilation * (kw - 1) - 1) // stride + 1
    top = np.zeros((x.shape[0], out, height, width))
    for n, o, i, j in np.ndindex(top.shape):
        total = 0.0 if bias is None else bias[o]
        first = o // (out // group) * weight.shape[1]
        for c, h, w in np.ndindex(weight.shape[1:]):
            row, column = i * stride - pad + h * dilation, j * stride - pad + w * dilation
            if 0 <= row < x.shape[2] and 0 <= column < x.shape[3]:
                total += weight[o, c, h, w] * x[n, first + c, row, column]
        top[n, o, i, j] = total
    return top


def deconvolution(x, weight, bias, stride, pad, group):
    """x [n, c, h, w], weight [c, out / group, kh, kw]"""
    channels, each, kh, kw = weight.shape
    height, width = stride * (x.shape[2] - 1) + kh - 2 * pad, stride * (x.shape[3] - 1) + kw - 2 * pad
    top = np.zeros((x.shape[0], each * group, height, width))
    for n, c, i, j in np.ndindex(x.shape):
        first = c // (channels // group) * each
        for o, h, w in np.ndindex(weight.shape[1:]):
            row, column = i * stride - pad + h, j * stride - pad + w
            if 0 <= row < height and 0 <= column < width:
                top[n, first + o, row, column] += x[n, c, i, j] * weight[c, o, h, w]
    return top if bias is None else top + bias[None, :, None, None]


class BatchNorm:
    """With its three blobs, over calls."""

    def __init__(self, channels, fraction, eps):
        self.mean, self.variance, self.factor = np.zeros(channels), np.zeros(channels), 0.0
        self.fraction, self.eps = fraction, eps

    def __call__(self, x, training):
        top = np.empty_like(x)
        count = x.size // x.shape[1]
        for c in range(x.shape[1]):
            if training:
                mean = sum(x[:, c].ravel()) / count
                variance = sum((v - mean) ** 2 for v in x[:, c].ravel()) / count
                self.mean[c] = self.mean[c] * self.fraction + mean
                unbiased = variance * (count / (count - 1) if count > 1 else 1)
                self.variance[c] = self.variance[c] * self.fraction + unbiased
            else:
                scale = 0.0 if self.factor == 0 else 1 / self.factor
                mean, variance = self.mean[c] * scale, self.variance[c] * scale
            top[:, c] = (x[:, c] - mean) / math.sqrt(variance + self.eps)
        if training:
            self.factor = self.factor * self.fraction + 1
        return top


def softmax(x, axis):
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def softmax_with_loss(x, labels, axis, normalization, ignore=None):
    probabilities = softmax(x, axis)
    rows = np.moveaxis(probabilities, axis, -1).reshape(-1, x.shape[axis])
    loss, valid = 0.0, 0
    for row, label in zip(rows, labels.ravel().astype(int), strict=True):
        if label != ignore:
            loss, valid = loss - math.log(max(row[label], 1.1754943508222875e-38)), valid + 1
    batch = int(np.prod(x.shape[: axis % x.ndim]))
    divisor = {"FULL": len(rows), "VALID": valid, "BATCH_SIZE": batch, "NONE": 1}[normalization]
    return loss / max(divisor, 1)


def sigmoid_cross_entropy(x, target, normalization, ignore=None):
    loss, valid = 0.0, 0
    for value, wanted in zip(x.ravel(), target.ravel(), strict=True):
        if int(wanted) != ignore:
            p = 1 / (1 + math.exp(-value))
            loss, valid = loss - wanted * math.log(p) - (1 - wanted) * math.log(1 - p), valid + 1
    divisor = {"FULL": x.size, "VALID": valid, "BATCH_SIZE": x.shape[0], "NONE": 1}[normalization]
    return loss / max(divisor, 1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, cont, wx, b, wh, cell, hidden):
    outputs, size = [], wh.shape[1]
    for t in range(x.shape[0]):
        gates = x[t] @ wx.T + b + (hidden * cont[t][:, None]) @ wh.T
        i, f, o, g = (gates[:, k * size : (k + 1) * size] for k in range(4))
        cell = cont[t][:, None] * sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        outputs.append(hidden)
    return np.stack(outputs), cell, hidden


def rnn(x, cont, wx, b, wh, wo, bo, hidden):
    outputs = []
    for t in range(x.shape[0]):
        hidden = np.tanh(x[t] @ wx.T + b + (hidden * cont[t][:, None]) @ wh.T)
        outputs.append(np.tanh(hidden @ wo.T + bo))
    return np.stack(outputs), hidden

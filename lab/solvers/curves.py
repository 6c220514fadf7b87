"""Train LeNet and CIFAR10-full from their own files, and the same nets and updates written by hand in torch:

    python lab/solvers/curves.py /path/to/caffe [iterations] [seeds]

The data are scikit-learn's digits, resized: real images of the right size, though not those of the papers. For each
seed both start with the same weights and get the same batches. The table shows the mean loss of the last 50 iterations,
and the mean difference of the two curves, compared with the spread between seeds.
"""

import re
import sys
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cuffi import caffe_net
from cuffi.train import Training

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def lenet(w, x):
    x = F.max_pool2d(F.conv2d(x, *w["conv1"]), 2)
    x = F.max_pool2d(F.conv2d(x, *w["conv2"]), 2)
    return F.linear(F.relu(F.linear(x.flatten(1), *w["ip1"])), *w["ip2"])


def within(x):
    """LRN WITHIN_CHANNEL of size 3: x (1 + alpha mean of x^2)^-beta, the mean over 3 x 3."""
    return x * (1 + 5e-5 * F.avg_pool2d(x * x, 3, 1, 1)) ** -0.75


def cifar10_full(w, x):
    x = within(F.relu(F.max_pool2d(F.conv2d(x, *w["conv1"], padding=2), 3, 2, ceil_mode=True)))
    x = within(F.avg_pool2d(F.relu(F.conv2d(x, *w["conv2"], padding=2)), 3, 2, ceil_mode=True))
    x = F.avg_pool2d(F.relu(F.conv2d(x, *w["conv3"], padding=2)), 3, 2, ceil_mode=True)
    return F.linear(x.flatten(1), *w["ip1"])


# By net: its files, a batch's shape, the net by hand, the rate of an iteration, decay, and the layers' multipliers.
NETS = {
    "LeNet": (
        ("examples/mnist/lenet_train_test.prototxt", "examples/mnist/lenet_solver.prototxt"),
        (64, 1, 28, 28), lenet, lambda i: 0.01 * (1 + 1e-4 * i) ** -0.75, 5e-4,
        dict.fromkeys(("conv1", "conv2", "ip1", "ip2"), ((1, 1), (2, 1))),
    ),
    "CIFAR10-full": (
        ("examples/cifar10/cifar10_full_train_test.prototxt", "examples/cifar10/cifar10_full_solver.prototxt"),
        (100, 3, 32, 32), cifar10_full, lambda i: 0.001, 0.004,
        {"conv1": ((1, 1), (2, 1)), "conv2": ((1, 1), (2, 1)), "conv3": ((1, 1), (1, 1)), "ip1": ((1, 250), (2, 0))},
    ),
}  # fmt: skip


def batches(shape, seed: int):
    """A function for Training: batches of digits from the start-th on."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = torch.tensor(images, dtype=torch.float).view(-1, 1, 8, 8)
    images = F.interpolate(images, shape[2:], mode="bilinear").expand(-1, shape[1], -1, -1)
    images = images / 16 if shape[1] == 1 else images * 16 - images.mean() * 16
    images, labels = images.to(DEVICE), torch.tensor(labels, dtype=torch.float, device=DEVICE)

    def from_(start: int):
        while True:
            chosen = torch.randint(
                len(labels), shape[:1], generator=torch.Generator().manual_seed(seed * 10**6 + start)
            )
            yield {"data": images[chosen.to(DEVICE)], "label": labels[chosen.to(DEVICE)]}
            start += 1

    return from_


def by_hand(name: str, weights, data, iterations: int) -> torch.Tensor:
    _, _, net, rate, decay, multipliers = NETS[name]
    memory = {(k, i): torch.zeros_like(p) for k, pair in weights.items() for i, p in enumerate(pair)}
    losses, source = [], data(0)
    for iteration in range(iterations):
        batch = next(source)
        loss = F.cross_entropy(net(weights, batch["data"]), batch["label"].long())
        flat = [p for pair in weights.values() for p in pair]
        gradients = iter(torch.autograd.grad(loss, flat))
        with torch.no_grad():
            for k, pair in weights.items():
                for i, p in enumerate(pair):
                    lr, wd = multipliers[k][i]
                    g = next(gradients) + decay * wd * p
                    memory[k, i].mul_(0.9).add_(g, alpha=rate(iteration) * lr)
                    p.sub_(memory[k, i])
        losses.append(loss.detach())
    return torch.stack(losses).cpu()


def by_file(caffe: Path, name: str, data, iterations: int, seed: int):
    """(the weights at the beginning, the losses)."""
    (net_file, solver_file), shape, *_ = NETS[name]
    text = (caffe / solver_file).read_text()
    text = re.sub(r"(?m)^(test_|snapshot|display|solver_mode|max_iter|random_seed).*$", "", text)
    with tempfile.NamedTemporaryFile("w", suffix=".prototxt") as solver:
        solver.write(text + f"\nmax_iter: {iterations} random_seed: {seed} snapshot_after_train: false\n")
        solver.flush()
        torch.manual_seed(seed)
        net = caffe_net(caffe / net_file, train=True, shapes={"data": shape, "label": shape[:1]})
        start = {
            k: tuple(p.detach().clone().to(DEVICE).requires_grad_() for p in m.parameters())
            for k, m in net.named_children()
            if any(True for _ in m.parameters())
        }
        training = Training(solver.name, net, data, [], device=DEVICE, log=lambda line: None)
        losses = []
        for _ in range(iterations):
            training.step(1)
            losses.append(training._recent[-1])
    return start, torch.stack(losses).cpu()


def main() -> None:
    caffe = Path(sys.argv[1])
    iterations, seeds = (int(n) for n in (*sys.argv[2:], *("300", "4")[len(sys.argv) - 2 :]))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for name, (_, shape, *_) in NETS.items():
        ours, theirs = [], []
        for seed in range(seeds):
            data = batches(shape, seed)
            weights, losses = by_file(caffe, name, data, iterations, seed)
            ours.append(losses)
            theirs.append(by_hand(name, weights, data, iterations))
        ours, theirs = torch.stack(ours).double(), torch.stack(theirs).double()
        last = slice(max(0, iterations - 50), None)
        print(
            f"{name}, {DEVICE}, {iterations} iterations, {seeds} seeds: first loss {ours[:, 0].mean():.4f}, "
            f"last 50 by file {ours[:, last].mean():.4f}, by hand {theirs[:, last].mean():.4f}; curves differ by "
            f"{(ours - theirs).abs().mean():.1e} on average (largest {(ours - theirs).abs().max():.1e}), "
            f"seeds by {ours[:, last].mean(1).std():.1e} at the end"
        )


if __name__ == "__main__":
    main()

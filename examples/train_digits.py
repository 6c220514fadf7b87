"""Train a small network of this toolkit's layers on real handwritten digits.

    python examples/train_digits.py                                  on the GPU, if there is one, or the CPU
    torchrun --nproc-per-node=2 examples/train_digits.py             two processes, with half of a batch each

The 1797 digits (8 x 8 pixels, from real forms) come from scikit-learn. DepthwiseConv2d filters an image. LLTM reads its
rows from top to bottom. Round turns LLTM's last state into bits, and passes the gradient straight through. A linear
layer computes the digit from the bits.

Prints the accuracy on test digits, and plots the training to build/examples/train_digits.png.
"""

import argparse
import hashlib
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cuffi.depthwise_conv import DepthwiseConv2d  # noqa: E402
from cuffi.lltm import LLTM  # noqa: E402
from cuffi.round import Round  # noqa: E402
from cuffi.sigmoid import Sigmoid  # noqa: E402

TEST_DIGITS = 360
BATCH = 32  # over all processes together
EPOCHS, QUICK_EPOCHS = 30, 10


class DigitReader(nn.Module):
    """[batch, 1, 8, 8] images to [batch, 10] scores, through `bits` bits.

    Attributes:
        code: the bits of the last batch, [batch, bits] of 0 and 1.
    """

    def __init__(self, channels: int = 16, state: int = 64, bits: int = 32):
        super().__init__()
        self.filters = nn.Sequential(
            nn.Conv2d(1, channels, 1),
            DepthwiseConv2d(channels, 3, padding=1, bias=True),
            nn.ReLU(),
        )
        self.reader = LLTM(8 * channels, state)
        self.bottleneck = nn.Sequential(nn.Linear(state, bits), Sigmoid(), Round())
        self.scores = nn.Linear(bits, 10)

    def forward(self, images: Tensor) -> Tensor:
        rows = self.filters(images).permute(2, 0, 1, 3).flatten(2)  # [rows, batch, channels * columns]
        state = self.reader(rows[0])
        for row in rows[1:]:
            state = self.reader(row, state)
        self.code = self.bottleneck(state[0])
        return self.scores(self.code)


def load_digits(device: torch.device) -> tuple[Tensor, Tensor]:
    """The images, [1797, 1, 8, 8] in [0, 1], and their digits, in a random order that is always the same."""
    try:
        from sklearn import datasets
    except ImportError:
        raise SystemExit(
            "train_digits: the digits are part of scikit-learn: pip install scikit-learn"
        ) from None
    digits = datasets.load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    return images[order].to(device), torch.tensor(digits.target)[order].to(device)


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, targets: Tensor) -> float:
    return (model(images).argmax(1) == targets).float().mean().item()


class Group:
    """The processes that train together: those of torchrun, or only this one."""

    def __init__(self, device: str):
        self.size, self.rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
        local = int(os.environ.get("LOCAL_RANK", 0))
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(f"cuda:{local}" if device == "cuda" else device)
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        else:
            torch.set_num_threads(1)  # the network is too small for more: they would wait for each other

    def __enter__(self):
        if self.size > 1:
            dist.init_process_group("nccl" if self.device.type == "cuda" else "gloo")
        return self

    def __exit__(self, *_):
        if self.size > 1:
            dist.destroy_process_group()

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model, its gradients averaged over all processes."""
        return DistributedDataParallel(model) if self.size > 1 else model

    def batches(self, count: int, epoch: int) -> list[Tensor]:
        """This process's share of each batch of an epoch, as indices."""
        order = torch.randperm(count, generator=torch.Generator().manual_seed(1701 + epoch))
        whole = order[: count - count % BATCH].view(-1, BATCH)
        return list(whole[:, self.rank :: self.size].to(self.device))


def parameters_digest(model: nn.Module) -> str:
    """A short digest of all bits of the parameters."""
    bits = b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())
    return hashlib.sha256(bits).hexdigest()[:16]


def train(
    model: nn.Module, group: Group, data: dict, epochs: int, progress: Progress
) -> dict[str, list[float]]:
    """Train for so many epochs. Returns the figures of each epoch, by name."""
    wrapped, history = group.wrap(model), {"loss": [], "accuracy": []}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    task = progress.add_task("training", total=epochs, text="")
    for epoch in range(epochs):
        losses = []
        for own in group.batches(len(data["images"]), epoch):
            loss = cross_entropy(wrapped(data["images"][own]), data["targets"][own])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        schedule.step()
        history["loss"].append(torch.stack(losses).mean().item())
        history["accuracy"].append(accuracy(model, data["test_images"], data["test_targets"]))
        text = f"loss {history['loss'][-1]:.3f}, accuracy {history['accuracy'][-1]:.1%}"
        progress.update(task, advance=1, text=text)
    return history


def plot(
    file: Path, history: dict[str, list[float]], model: DigitReader, images: Tensor, targets: Tensor
) -> None:
    """Plot the training, and a few test digits with their bits."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with torch.no_grad():
        found = model(images[:12]).argmax(1).tolist()
    figure = plt.figure(figsize=(10, 4.5), layout="constrained")
    ((way, shown),) = figure.subfigures(1, 2, squeeze=False)
    axes = way.subplots()
    epochs = range(1, len(history["loss"]) + 1)
    axes.plot(epochs, history["loss"], color="#d55e00", marker=".", label="loss, training")
    axes.plot(epochs, history["accuracy"], color="#0072b2", marker=".", label="accuracy, test")
    axes.set_xlabel("epoch")
    axes.set_ylim(0)
    axes.legend(frameon=False)
    for i, cell in enumerate(shown.subplots(3, 8).flat):
        cell.axis("off")
        if i % 2 == 0:
            right = found[i // 2] == targets[i // 2].item()
            cell.imshow(images[i // 2, 0].tolist(), cmap="gray_r")
            cell.set_title(f"a {found[i // 2]}", color="black" if right else "red", fontsize=9)
        else:
            cell.imshow(model.code[i // 2].view(-1, 4).tolist(), cmap="binary", vmin=0, vmax=1)
            cell.set_title("its bits", fontsize=7)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main(argv: list[str] | None = None) -> float:
    """Train, and return the accuracy on the test digits."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, help=f"default {EPOCHS}; {QUICK_EPOCHS} with --quick")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--quick", action="store_true", help="a short run, no plot")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    epochs = options.epochs if options.epochs is not None else QUICK_EPOCHS if options.quick else EPOCHS
    with Group(options.device) as group:
        torch.manual_seed(options.seed)
        images, targets = load_digits(group.device)
        data = {
            "images": images[TEST_DIGITS:],
            "targets": targets[TEST_DIGITS:],
            "test_images": images[:TEST_DIGITS],
            "test_targets": targets[:TEST_DIGITS],
        }
        model = DigitReader().to(group.device)
        before = accuracy(model, data["test_images"], data["test_targets"])
        console = Console(quiet=group.rank > 0)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
        )
        start = time.perf_counter()
        with Progress(*columns, console=console, disable=group.rank > 0) as progress:
            history = train(model, group, data, epochs, progress)
        seconds = time.perf_counter() - start
        after = accuracy(model, data["test_images"], data["test_targets"])
        # Each process prints one line: with the same gradients they have the same parameters, bit by bit.
        who = f"process {group.rank + 1} of {group.size} ({group.device})"
        print(f"{who}: parameters {parameters_digest(model)}", flush=True)
        console.print(
            f"test accuracy {after:.1%} (untrained {before:.1%}), {epochs} epochs in {seconds:.1f} s",
            highlight=False,
        )
        if group.rank == 0 and epochs > 0 and not options.quick:
            file = ROOT / "build" / "examples" / "train_digits.png"
            plot(file, history, model, data["test_images"], data["test_targets"])
            console.print(f"plot: {file.relative_to(ROOT)}", highlight=False)
    return after


if __name__ == "__main__":
    main()

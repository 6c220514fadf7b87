"""Train a net in Caffe's own format, with a custom layer, on real handwritten digits.

    python examples/train_caffe_net.py                 on the GPU, if there is one, or the CPU
    python examples/train_caffe_net.py --quick         fewer epochs

The prototxt below is a smaller LeNet, for the 1797 digits (8 x 8 pixels) of scikit-learn. Its layer `norm` is not a
stock layer: the Caffe layer cuffi.normalize computes it, and torch trains it like the others. The learning
rates are Caffe's: lr_mult 2 for biases, and the policy "inv".

Prints the accuracy on test digits, saves a .caffemodel and loads it again.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cuffi import caffe_net  # noqa: E402

TRAIN_VAL = """
name: "SmallLeNet"
layer { name: "digits" type: "Data" top: "data" top: "label" data_param { batch_size: 32 source: "digits_lmdb" } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  param { lr_mult: 1 } param { lr_mult: 2 }
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "norm" type: "Normalize" bottom: "pool1" top: "norm"
  norm_param { across_spatial: false channel_shared: false eps: 0.01 scale_filler { type: "constant" value: 2 } } }
layer { name: "conv2" type: "Convolution" bottom: "norm" top: "conv2"
  param { lr_mult: 1 } param { lr_mult: 2 }
  convolution_param { num_output: 32 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1"
  param { lr_mult: 1 } param { lr_mult: 2 }
  inner_product_param { num_output: 64 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  param { lr_mult: 1 } param { lr_mult: 2 }
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
"""
WITHOUT_NORM = TRAIN_VAL.replace('bottom: "norm"', 'bottom: "pool1"').replace(
    TRAIN_VAL[TRAIN_VAL.index('layer { name: "norm"') : TRAIN_VAL.index('layer { name: "conv2"')], ""
)
TEST_DIGITS, BATCH = 360, 32
EPOCHS, QUICK_EPOCHS = 20, 6


def digits(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Images [1797, 1, 8, 8] in [0, 1], and their digits."""
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError:
        raise SystemExit("This example needs scikit-learn for its images: pip install scikit-learn") from None

    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(data.images, dtype=torch.float32)[order, None] / 16
    return images.to(device), torch.tensor(data.target)[order].to(device)


def train(net, images, labels, epochs: int) -> None:
    optimizer = torch.optim.SGD(net.parameter_groups(lr=0.05, weight_decay=0.0005), momentum=0.9)
    policy = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (1 + 1e-4 * step) ** -0.75)
    net.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(BATCH):
            loss = net.loss(net(data=images[batch], label=labels[batch]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            policy.step()


def main(arguments: list[str] | None = None) -> float:
    """The accuracy on the test digits."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--without-custom-layer", action="store_true", help="a net of only stock layers")
    said = parser.parse_args(arguments)
    torch.manual_seed(0)
    prototxt = WITHOUT_NORM if said.without_custom_layer else TRAIN_VAL
    net = caffe_net(prototxt, shapes={"data": (BATCH, 1, 8, 8)}).to(said.device)
    images, labels = digits(said.device)
    epochs = said.epochs if said.epochs is not None else QUICK_EPOCHS if said.quick else EPOCHS
    train(net, images[TEST_DIGITS:], labels[TEST_DIGITS:], epochs)
    net.eval()
    with torch.no_grad():
        accuracy = net(data=images[:TEST_DIGITS], label=labels[:TEST_DIGITS])["accuracy"].item()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.caffemodel"
        net.save_caffemodel(path)
        again = caffe_net(prototxt, path, shapes={"data": (BATCH, 1, 8, 8)}).to(said.device)
        with torch.no_grad():
            assert torch.equal(
                again(data=images[:TEST_DIGITS], end="ip2"), net(data=images[:TEST_DIGITS], end="ip2")
            )
        print(f"{path.name}: {path.stat().st_size} bytes, loaded again")
    print(f"{accuracy:.1%} of {TEST_DIGITS} digits that it has not seen")
    return accuracy


if __name__ == "__main__":
    main()

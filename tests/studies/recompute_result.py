"""Recompute one result of the pilot study or of the board of real backbones without fsbench.

    PYTHONPATH=tests python -m studies.recompute_result NETWORK EPISODES IMAGES ENTRY COLUMN

NETWORK: folder of a pilot run, for its model.safetensors, or the file of an EfficientNet-Lite, for
the network of the package efficientnet-lite-pytorch; EPISODES: the file that `fsbench episodes
export` wrote; IMAGES: the folder that the paths in it are relative to; ENTRY: folder of an entry or
of the results of a model; COLUMN: what the name of its column begins with, such as
eurosat:5w1s/linear. Of an entry of several seeds, the result is that of the run of this name.

The script imports nothing of fsbench. It uses the network with the weights of the file, PIL and,
for each episode, a torch.nn head trained by torch.optim.SGD batch by batch, scikit-learn's logistic
regression, or the nearest class mean. Only the initial head and the order of its batches are drawn
from the same random streams as in fsbench, so that episodes can be compared one by one; float32
rounding may flip a query now and then. The two agree if at most one query in 200 differs, at most
three in one episode, and the means differ by less than .05 points.
"""

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file
from sklearn.linear_model import LogisticRegression
from timm.models.resnet import BasicBlock, ResNet
from torch import Tensor, nn
from torchvision.transforms import v2

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
LITE_MEAN, LITE_STD = (127 / 255,) * 3, (128 / 255,) * 3
EPOCHS, BATCH = 100, 4
SGD = {"lr": 0.01, "momentum": 0.9, "dampening": 0.9, "weight_decay": 0.001}
SHARE, QUERIES, POINTS = 1 / 200, 3, 0.05
"""Limits of agreement: share of all queries, queries of one episode, points between the means."""


class StoredResult(NamedTuple):
    """A result: which queries (E, n_way * n_query) are right, and what its episodes depend on."""

    column: str
    dataset: str
    episode: dict[str, Any]
    correct: NDArray[np.bool_]

    @property
    def head(self) -> str:
        return re.split("[/@]", self.column)[-2]

    @property
    def side(self) -> int:
        """Side of the images (px)."""
        return int(self.column.split(" ")[1].removesuffix("px"))


def read_result(entry: Path, column: str, run: str) -> StoredResult:
    """Read a result of a run, or the first one of the column if none is of that run."""
    file = json.loads((entry / "entry.json").read_text(encoding="utf8"))
    lines = [(i, r) for i, r in enumerate(file["results"]) if r["column"].startswith(column)]
    of_run = [(i, r) for i, r in lines if file["models"][r["model"]]["ref"].endswith(f"/{run}")]
    number, line = (of_run or lines)[0]
    (path,) = entry.glob("outcomes-*.arrow.zst")
    with pa.input_stream(path, compression="zstd") as stream:
        table = pa.ipc.open_file(stream.read()).read_all()
    rows = table.filter(pa.compute.equal(table["result"], number))["correct"].to_pylist()
    spec = file["specs"][line["spec"]]["episode"]
    by_class = np.array(rows, np.uint8).reshape(len(rows), spec["n_way"], -1)
    right = np.unpackbits(by_class, axis=-1, count=spec["n_query"]).astype(bool)
    dataset = re.sub(r"\+[0-9a-f]{8}$", "", file["datasets"][line["dataset"]]["name"])
    return StoredResult(line["column"], dataset, spec, right.reshape(len(rows), -1))


def network(file: Path, side: int) -> nn.Module:
    """Return the network of a pilot run or of an EfficientNet-Lite, with normalisation."""
    if file.is_dir():
        return nn.Sequential(v2.Normalize(MEAN, STD), pilot(load_file(file / "model.safetensors")))
    from efficientnet_lite_pytorch import EfficientNet

    name = file.name.rpartition("-")[0]
    lite = EfficientNet.from_name(name, image_size=side)  # pads for this size
    lite.load_state_dict(torch.load(file, weights_only=True))
    lite._dropout, lite._fc = nn.Identity(), nn.Identity()
    return nn.Sequential(v2.Normalize(LITE_MEAN, LITE_STD), lite).eval()


def pilot(weights: dict[str, Tensor]) -> nn.Module:
    """Return the pilot network without its head: four stages of one block, 3x3 stem of stride 2."""
    width = len(weights["conv1.weight"])
    channels = tuple(width << stage for stage in range(4))
    made = ResNet(BasicBlock, (1, 1, 1, 1), num_classes=0, channels=channels)
    made.conv1, made.maxpool = nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.Identity()
    made.bn1, made.layer1 = nn.BatchNorm2d(width), nn.Sequential(BasicBlock(width, width))
    made.load_state_dict({k: v for k, v in weights.items() if not k.startswith("fc.")})
    return made.eval()


def features(net: nn.Module, side: int, images: Path, names: list[str]) -> dict[str, Tensor]:
    """Return the feature vector of each file by its name."""

    def read(name: str) -> Tensor:
        """Return pixels (1, 3, side, side) in [0, 1]: a square, then its centre."""
        image, large = Image.open(images / name).convert("RGB"), int(1.15 * side)
        start = round((large - side) / 2)
        square = image.resize((large, large), Image.Resampling.BILINEAR)
        part = np.asarray(square.crop((start, start, start + side, start + side)))
        return torch.from_numpy(part.copy()).permute(2, 0, 1)[None].float() / 255

    with torch.no_grad():
        return {name: net(read(name))[0] for name in names}


def words(n: int, *names: str | int) -> NDArray[np.uint64]:
    """Return n 64-bit words of the Philox stream keyed by the hash of these names."""
    text = "\x1f".join(f"{type(name).__name__}:{name}" for name in names)
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
    return np.random.Philox(key=seed).random_raw(n)


def untrained(dim: int, n_way: int, *names: str | int) -> nn.Linear:
    """Return nn.Linear with torch's default distribution, from the stream `head-init`.

    The stream gives the weights first, then the biases.
    """
    uniform = (words((dim + 1) * n_way, *names, "head-init") >> np.uint64(11)) * 2.0**-53
    drawn = torch.from_numpy((2 * uniform - 1) / np.sqrt(dim)).float().reshape(dim + 1, n_way)
    head = nn.Linear(dim, n_way)
    head.load_state_dict({"weight": drawn[:-1].T, "bias": drawn[-1]})
    return head


def episode(
    head: str, support: Tensor, query: Tensor, n_way: int, names: tuple[str | int, ...]
) -> NDArray[np.bool_]:
    """Fit a head and return which queries it classifies correctly.

    support: features (n_way * k, D); query: features (n_way * q, D).
    """
    labels = torch.arange(n_way).repeat_interleave(len(support) // n_way)
    truth = torch.arange(n_way).repeat_interleave(len(query) // n_way)
    if head == "logistic":
        unit = [nn.functional.normalize(part).double().numpy() for part in (support, query)]
        return (
            LogisticRegression(max_iter=1000).fit(unit[0], labels).predict(unit[1]) == truth.numpy()
        )
    if head == "centroid":
        means = support.reshape(n_way, -1, support.shape[1]).mean(dim=1)
        return (torch.cdist(query, means).argmin(dim=1) == truth).numpy()
    return (train(support, labels, n_way, names)(query).argmax(dim=1) == truth).numpy()


def train(support: Tensor, labels: Tensor, n_way: int, names: tuple[str | int, ...]) -> nn.Module:
    """Return a linear head that was trained by SGD."""
    n = len(support)
    head = untrained(support.shape[1], n_way, *names)
    sgd = torch.optim.SGD(head.parameters(), **SGD)
    for keys in words(EPOCHS * n, *names, "head-order").reshape(EPOCHS, n):
        for rows in torch.from_numpy(keys.argsort(kind="stable")).split(BATCH):
            sgd.zero_grad()
            nn.functional.cross_entropy(head(support[rows]), labels[rows]).backward()
            sgd.step()
    return head


def main(file: Path, episodes: Path, images: Path, entry: Path, column: str) -> int:
    """Print both means and whether they agree; return 1 if they do not."""
    result = read_result(entry, column, file.name)
    spec = json.dumps(result.episode, sort_keys=True, separators=(",", ":"))
    stream = hashlib.sha256(spec.encode()).hexdigest()
    drawn = [json.loads(line) for line in episodes.read_text().splitlines()]
    parts = [
        [[name for names in e[part] for name in names] for part in ("support", "query")]
        for e in drawn
    ]
    files = sorted({name for names in parts for part in names for name in part})
    vectors = features(network(file, result.side), result.side, images, files)
    plain = np.array(
        [
            episode(
                result.head,
                *(torch.stack([vectors[name] for name in part]) for part in names),
                len(e["class_ids"]),
                (stream, result.dataset, e["index"]),
            )
            for e, names in zip(drawn, parts, strict=True)
        ]
    )
    board = result.correct[: len(plain)]
    flips, points = (plain != board).sum(axis=1), 100 * (plain.mean() - board.mean())
    share = flips.sum() / plain.size
    agree = share <= SHARE and flips.max() <= QUERIES and abs(points) < POINTS
    print(
        f"{result.column}: board {100 * board.mean():.2f}, plain {100 * plain.mean():.2f};"
        f" {flips.sum()} of {plain.size} queries differ, in one episode at most {flips.max()},"
        f" {len(plain)} episodes: {'agree' if agree else 'DISAGREE'}"
    )
    return 0 if agree else 1


if __name__ == "__main__":
    *folders, column = sys.argv[1:6]
    sys.exit(main(*map(Path, folders), column))

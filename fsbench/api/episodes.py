"""Episodes of a task as image tensors, for methods that are trained or tested outside fsbench."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.api.options import Machine
from fsbench.core import tasks
from fsbench.core.errors import UsageError
from fsbench.core.specs import ImageSpec
from fsbench.data.episodes import load_episodes, parse_episodic_task
from fsbench.data.images import crop_centres


@dataclass(frozen=True, eq=False)
class EpisodeImages:
    """One episode: images, labels 0..n_way-1 and paths, ordered by class.

    support (n_way * n_shot, 3, H, W), query (n_way * n_query, 3, H, W): uint8, or what `transform`
    returned; class_names: of the labels; paths are relative to the folder of the data set.
    """

    index: int
    class_names: tuple[str, ...]
    support: Tensor
    support_labels: Tensor
    support_paths: tuple[str, ...]
    query: Tensor
    query_labels: Tensor
    query_paths: tuple[str, ...]


class Episodes:
    """The episodes of a few-shot task, the same that `fsbench.evaluate` runs.

    Episode i depends on the task, the data set, the seed and i alone. It can be used as a map-style
    data set: `torch.utils.data.DataLoader(episodes, batch_size=None, num_workers=4)`.

    task: one episodic task, e.g. `eurosat:5w5s` or `eurosat:5w1s@startup`; its head plays no role.
    data: folder with the data sets, or NAME=DIR for one, as `--data`; default FSBENCH_DATA.
    episodes: how many there are; 600 is the official number. input_size: side of the images (px),
    resized to int(1.15 * side) squared, then cropped to the centre, as for every backbone. seed:
    another series of episodes; 0 is the official one. transform: applied to the uint8 images
    (B, 3, H, W) of support and query, e.g. `backbone.normalised`.

    Raises UsageError for a task that is malformed, a probe, or several; DataError if images are
    missing, or a class is too small.

    Examples
    --------
    >>> import fsbench
    >>> episodes = fsbench.Episodes("toy_tiles:5w5s", episodes=3, input_size=32)
    >>> for episode in episodes:
    ...     assert episode.support.shape == (25, 3, 32, 32)
    ...     assert episode.query_labels.tolist() == [label for label in range(5) for _ in range(15)]
    >>> len(episodes), episodes[0].support.dtype
    (3, torch.uint8)
    """

    def __init__(
        self,
        task: str | tasks.TaskId,
        *,
        data: str | Path | Sequence[str | Path] = (),
        episodes: int = 600,
        input_size: int = 224,
        seed: int = 0,
        transform: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        if episodes < 1:
            raise UsageError(f"{episodes} episodes", fix="give a number of at least 1")
        self.task = parse_episodic_task(task) if isinstance(task, str) else task
        self.dataset, self.sampler = load_episodes(self.task, Machine(data=data).roots, seed)
        self.image, self.transform = ImageSpec(input_size=input_size), transform
        self._n_episodes = episodes

    def __len__(self) -> int:
        return self._n_episodes

    def __getitem__(self, index: int) -> EpisodeImages:
        i = operator.index(index)
        i += len(self) if i < 0 else 0
        if not 0 <= i < len(self):
            raise IndexError(f"episode {index} of {len(self)}")
        episode = self.sampler.episode(i)
        support, query = episode.images(self.dataset.by_class)
        names = tuple(self.dataset.class_names[int(c)] for c in episode.class_ids)
        return EpisodeImages(i, names, *self._load(support), *self._load(query))

    def __repr__(self) -> str:
        size = self.image.input_size
        task = f"{self.task.in_results.dataset}:{self.task.shape}"
        return f"Episodes({task!r}, {len(self)} episodes, {size} px)"

    def _load(self, indices: NDArray[Any]) -> tuple[Tensor, Tensor, tuple[str, ...]]:
        """Return images (B, 3, H, W), labels (B,) and paths of indices (n_way, n), by class."""
        flat = indices.ravel().tolist()
        pixels = torch.from_numpy(
            crop_centres(map(self.dataset.image, flat), self.image, len(flat))
        )
        images = pixels.contiguous() if self.transform is None else self.transform(pixels)
        labels = torch.arange(len(indices)).repeat_interleave(indices.shape[1])
        return images, labels, tuple(self.dataset.paths[j] for j in flat)

"""Episodes of a task as image tensors, for methods that are trained or tested outside fsbench."""

import operator
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.api.episode_images import EpisodeImages
from fsbench.api.options import Machine, Stored
from fsbench.api.results import Results, load_results
from fsbench.core import tasks
from fsbench.core.errors import UsageError
from fsbench.core.records import EpisodeRecords
from fsbench.core.specs import ImageSpec
from fsbench.data.episodes import load_episodes, parse_episodic_task
from fsbench.data.images import crop_centres

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Episodes:
    """The episodes of a few-shot task, the same that `fsbench.evaluate` runs.

    Episode i depends on the task, the data set, the seed and i alone. It can be used as a map-style
    data set: `torch.utils.data.DataLoader(episodes, batch_size=None, num_workers=4)`.

    task: one episodic task, e.g. `eurosat:5w5s` or `eurosat:5w1s@startup`; its head plays no role
    but in `plot`.
    data: folder with the data sets, or NAME=DIR for one, as `--data`; default FSBENCH_DATA.
    episodes: how many there are; 600 is the official number. input_size: side of the images (px),
    resized to int(1.15 * side) squared, then cropped to the centre, as for every backbone. seed:
    another series of episodes; 0 is the official one. n_query: queries per class, 15 officially.
    transform: applied to the uint8 images (B, 3, H, W) of support and query, e.g.
    `backbone.normalised`.

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
        n_query: int = 15,
        transform: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        if episodes < 1:
            raise UsageError(f"{episodes} episodes", fix="give a number of at least 1")
        self.task = parse_episodic_task(task) if isinstance(task, str) else task
        self.head = tasks.TaskPattern.parse(str(task)).fields.get("head")
        roots = Machine(data=data).roots
        self.dataset, self.sampler = load_episodes(self.task, roots, seed, n_query)
        self.image, self.transform = ImageSpec(input_size=input_size), transform
        self._n_episodes = episodes

    def __len__(self) -> int:
        return self._n_episodes

    def __getitem__(self, index: int) -> EpisodeImages:
        i = range(len(self))[operator.index(index)]  # which may raise IndexError
        episode = self.sampler.episode(i)
        support, query = episode.images(self.dataset.by_class)
        names = tuple(self.dataset.class_names[int(c)] for c in episode.class_ids)
        return EpisodeImages(i, names, *self._load(support), *self._load(query))

    def __repr__(self) -> str:
        return f"Episodes({self.name!r}, {len(self)} episodes, {self.image.input_size} px)"

    @property
    def name(self) -> str:
        """Data set, ways and shots, e.g. eurosat:5w1s."""
        return f"{self.task.in_results.dataset}:{self.task.shape}"

    def plot(self, index: int, results: Stored | None = None) -> "Figure":
        """Return a picture of an episode, with what heads take the queries for.

        results: folder or `Results`; the queries are drawn for each one of this task (and head, if
        the task names one): a frame and a cross mark what is wrong, with the predicted class where
        it is stored. Raises UsageError for an episode that is not there.
        """
        if index not in range(len(self)):
            raise UsageError(f"episode {index} of {len(self)}", fix=f"take 0 to {len(self) - 1}")
        images = copy(self)
        images.transform = None
        episode = images[index]
        answers = {"queries": episode.query_labels.numpy()}
        if results is not None:
            answers = self._find_answers(index, answers["queries"], results)
        return episode.draw(f"{self.name}, episode {index}", answers)

    def _find_answers(
        self, index: int, truth: NDArray[np.int64], results: Stored
    ) -> dict[str, NDArray[np.int64]]:
        """Return what each result takes the queries for, as `EpisodeImages.draw` takes it."""
        results = results if isinstance(results, Results) else load_results(results)
        answers = {}
        for one in results.load():
            records, result, column = one.records, one.result, one.result.column
            if (
                isinstance(records, EpisodeRecords)
                and index in records.index
                and self.head in {None, column.task.head}
                and result.dataset.images_hash == self.dataset.images_hash
                and result.manifest_hash == self.sampler.manifest_hash(records.index)
            ):
                row = records.take(records.index == index)
                heading = f"{one.model} {column.adaptation} {column.input_size}px"
                heading += f": {row.hits[0]} of {truth.size} right"
                if row.predicted is None:
                    heading += " (predicted classes are not stored)"
                    answers[heading] = np.where(row.correct.ravel(), truth, -1)
                else:
                    answers[heading] = row.predicted[0].astype(np.int64)
        if not answers:
            spec, columns = self.sampler.spec, ", ".join(str(r.column) for r in results)
            raise UsageError(
                f"no result holds episode {index} of {self.name} with these images, seed "
                f"{spec.seed} and {spec.n_query} queries",
                fix=f"take task, data, seed and n_query of the results: {columns}",
            )
        return answers

    def _load(self, indices: NDArray[Any]) -> tuple[Tensor, Tensor, tuple[str, ...]]:
        """Return images (B, 3, H, W), labels (B,) and paths of indices (n_way, n), by class."""
        flat = indices.ravel().tolist()
        crops = crop_centres(map(self.dataset.image, flat), self.image, len(flat))
        pixels = torch.from_numpy(crops)
        images = pixels.contiguous() if self.transform is None else self.transform(pixels)
        labels = torch.arange(len(indices)).repeat_interleave(indices.shape[1])
        return images, labels, tuple(self.dataset.paths[j] for j in flat)

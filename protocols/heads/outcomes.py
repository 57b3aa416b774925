"""From query logits to the records of a block of episodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fsbench.core.records import EpisodeRecords
from fsbench.data.episodes import Episode


def episode_records(episodes: Sequence[Episode], logits: Tensor, n_query: int) -> EpisodeRecords:
    """Top-1 outcomes of logits (E, n_way * n_query, n_way), queries class by class.

    A non-finite logit marks its episode; its predictions count as argmax gives them.
    """
    predicted = logits.argmax(dim=2)
    truth = torch.arange(logits.shape[2], device=logits.device).repeat_interleave(n_query)
    return EpisodeRecords(
        index=np.array([episode.index for episode in episodes], dtype=np.int64),
        class_ids=np.stack([episode.class_ids for episode in episodes]),
        correct=(predicted == truth).view(len(episodes), -1, n_query).cpu().numpy(),
        collapsed=(predicted == predicted[:, :1]).all(dim=1).cpu().numpy(),
        finite=torch.isfinite(logits).flatten(1).all(dim=1).cpu().numpy(),
    )

"""fsbench: does this backbone, pretraining method or initialisation transfer, and is the gain real?

Evaluate a backbone on few-shot tasks, look at the numbers, and keep them:

>>> import fsbench
>>> results = fsbench.evaluate(
...     "fsbench/toy_resnet", "toy_tiles:5w1s", random_init=0, episodes=20
... )
>>> results.to_frame()[["dataset", "n_way", "n_shot", "head", "episodes"]]
     dataset  n_way  n_shot    head  episodes
0  toy_tiles      5       1  linear        20

Public names are imported on first use, so that `import fsbench` stays fast and without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fsbench.core import __version__

if TYPE_CHECKING:
    from fsbench.api.compare import compare
    from fsbench.api.episodes import Episodes
    from fsbench.api.evaluate import evaluate
    from fsbench.api.leaderboard import leaderboard
    from fsbench.api.listing import list_datasets, list_heads, list_methods, list_models
    from fsbench.api.pretrain import Run, pretrain
    from fsbench.api.results import Results, load_results
    from fsbench.api.submit import submit
    from fsbench.backbones.base import Backbone

__all__ = [
    "Backbone",
    "Episodes",
    "Results",
    "Run",
    "__version__",
    "compare",
    "evaluate",
    "leaderboard",
    "list_datasets",
    "list_heads",
    "list_methods",
    "list_models",
    "load_results",
    "pretrain",
    "submit",
]

_MODULES = {
    "Backbone": "fsbench.backbones.base",
    "Episodes": "fsbench.api.episodes",
    "Results": "fsbench.api.results",
    "Run": "fsbench.api.pretrain",
    "compare": "fsbench.api.compare",
    "evaluate": "fsbench.api.evaluate",
    "leaderboard": "fsbench.api.leaderboard",
    "list_datasets": "fsbench.api.listing",
    "list_heads": "fsbench.api.listing",
    "list_methods": "fsbench.api.listing",
    "list_models": "fsbench.api.listing",
    "load_results": "fsbench.api.results",
    "pretrain": "fsbench.api.pretrain",
    "submit": "fsbench.api.submit",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module 'fsbench' has no attribute '{name}'")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

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
    from fsbench.api.compare import compare as compare
    from fsbench.api.episodes import Episodes as Episodes
    from fsbench.api.evaluate import evaluate as evaluate
    from fsbench.api.leaderboard import leaderboard as leaderboard
    from fsbench.api.listing import list_datasets as list_datasets
    from fsbench.api.listing import list_heads as list_heads
    from fsbench.api.listing import list_methods as list_methods
    from fsbench.api.listing import list_models as list_models
    from fsbench.api.pretrain import Run as Run
    from fsbench.api.pretrain import pretrain as pretrain
    from fsbench.api.results import Results as Results
    from fsbench.api.results import load_results as load_results
    from fsbench.api.submit import submit as submit
    from fsbench.backbones.base import Backbone as Backbone

_MODULES = {
    "fsbench.api.compare": ("compare",),
    "fsbench.api.episodes": ("Episodes",),
    "fsbench.api.evaluate": ("evaluate",),
    "fsbench.api.leaderboard": ("leaderboard",),
    "fsbench.api.listing": ("list_datasets", "list_heads", "list_methods", "list_models"),
    "fsbench.api.pretrain": ("Run", "pretrain"),
    "fsbench.api.results": ("Results", "load_results"),
    "fsbench.api.submit": ("submit",),
    "fsbench.backbones.base": ("Backbone",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'fsbench' has no attribute '{name}'")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

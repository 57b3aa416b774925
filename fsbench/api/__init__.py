"""The public functions, one module per job; `import fsbench` offers them under its own name.

Only this package joins data, backbones, pretraining, protocols, results and the leaderboard.
"""

from importlib.util import find_spec
from pathlib import Path

# The four packages carry generic names: a folder called `pretrain` in the working directory would
# be imported instead of ours, with errors far from their cause.
_HOME = Path(__file__).resolve().parent.parent.parent
for _name in ("pretrain", "protocols", "leaderboard"):
    _spec = find_spec(_name)
    _origin = _spec.origin if _spec else None
    if _origin is None or Path(_origin).resolve().parent.parent != _HOME:
        raise ImportError(
            f"package '{_name}' is imported from {_origin}, not from {_HOME} as fsbench is: "
            "use the fsbench command, or work from another folder"
        )

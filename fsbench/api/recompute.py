"""The script that recomputes an entry's results.

An entry holds the recipe of its backbones and the spec of each result, so the commands name them:
`fsbench pretrain ENTRY.json`, `fsbench benchmark --spec ENTRY:COLUMN`. Nothing is executed here,
the command line of the submitter is not used, and every argument is one word, quoted for a
POSIX shell.
"""

import re
import shlex
from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from fsbench.core.errors import FsbenchError, ValidationFailed
from fsbench.core.schema import BackboneFacts, Provenance, find_code
from fsbench.core.specs import FeatureSpec
from fsbench.results import provenance
from fsbench.results.entry import ENTRY_FILE, Loaded
from leaderboard.store import BoardEntry
from pretrain.recipes.recipe import Recipe

PLAIN = re.compile(r"[A-Za-z0-9][\w.+!-]*", re.ASCII)
"""Names and versions of packages that pip may be told to install."""


def recompute(entry: BoardEntry, board: str) -> list[str]:
    """Return the lines of the script: the commands of every network and environment.

    Raises ValidationFailed for results of code of the submitter.
    """
    groups: dict[str, list[Loaded]] = {}
    for loaded in entry.loaded:
        made, facts = loaded.result.provenance, loaded.result.backbone
        code = facts.ref if facts.runs_code else find_code(facts.training and facts.training.recipe)
        if code is not None:
            raise ValidationFailed(
                f"'{entry.name}' is computed by code of its author: {code[:100]!r}",
                fix="ask for that code and read it first; no command that runs it is printed",
            )
        key = f"{facts.identity} {describe_environment(made)} {sorted(made.packages.items())}"
        groups.setdefault(key, []).append(loaded)
    lines = [f"# entry {shlex.quote(entry.name)}; data sets: --data or FSBENCH_DATA"]
    for results in groups.values():
        lines += write_commands(entry, results, board)
    return lines


def write_commands(entry: BoardEntry, results: Sequence[Loaded], board: str) -> Iterator[str]:
    """Yield the lines for results of one network and environment of an entry."""
    made, facts = results[0].result.provenance, results[0].result.backbone
    yield f"# {describe_environment(made)}"
    packages = [
        f"{package}=={version}"
        for package, version in sorted(made.packages.items())
        if PLAIN.fullmatch(package) and PLAIN.fullmatch(version)
    ]
    yield shlex.join(["python", "-m", "pip", "install", *packages, "."])
    ref, recipe = facts.ref, recipe_of(facts)
    if recipe is not None:
        seed = [f"--set=seed={recipe.seed}"] if len(entry.networks) > 1 else []
        path = str(results[0].folder / ENTRY_FILE)
        yield shlex.join(["fsbench", "pretrain", path, *seed, "--output=runs"])
        ref = f"run:runs/{recipe.label}"
    elif facts.recipe is not None:
        yield f"# this version does not read the recipe {facts.recipe}: pretrain it yourself"
    network = [f"--arch={facts.architecture}"] if facts.source == "file" else []
    network += [] if facts.random_init is None else [f"--random-init={facts.random_init}"]
    kinds = {"device": made.device, "features-device": made.features_device}
    devices = [f"--{name}={'cpu' if on == 'cpu' else 'cuda'}" for name, on in kinds.items() if on]
    machine = [f"--threads={made.threads}", *devices]
    machine += [] if made.batch_size is None else [f"--batch-size={made.batch_size}"]
    options = [*network, *feature_options(facts.feature_spec), *machine, "--output=results"]
    specs: dict[str, list[str]] = {}  # one command takes one spec of each task
    for loaded in results:
        column = loaded.result.column
        of_command = specs.setdefault(f"{column.input_size} {column.variant}", [])
        of_command.append(f"--spec={loaded}")
    for of_command in specs.values():
        yield shlex.join(["fsbench", "benchmark", f"--model={ref}", *of_command, *options])
    verify = ["fsbench", "leaderboard", "verify", entry.name, f"--model={facts.ref}"]
    where = devices if made.features_device else []
    yield shlex.join([*verify, *network, *where, f"--board={board}"])


def recipe_of(facts: BackboneFacts) -> Recipe | None:
    """Return the recipe that the results hold, None if its digest is not the recorded one."""
    try:
        recipe = Recipe.model_validate(facts.training and facts.training.recipe)
    except (FsbenchError, ValidationError):  # of another version of fsbench
        return None
    return recipe if recipe.digest() == facts.recipe_digest else None


def describe_environment(made: Provenance) -> str:
    """Return software and machine, with all that equal bits depend on."""
    software = {"fsbench": made.fsbench, "commit": made.git_commit or "unknown"}
    machine = {"python": made.python, "platform": made.platform}
    parts = software | machine | provenance.environment_of(made)
    return ", ".join(f"{name} {value}" for name, value in parts.items())


def feature_options(spec: FeatureSpec) -> Iterator[str]:
    """Yield the options that choose how features are taken."""
    for name, value in spec.model_dump(mode="json").items():
        text = ",".join(map(str, value)) if name in {"mean", "std"} else value
        yield "--features=head" if name == "head" else f"--{name}={text}"

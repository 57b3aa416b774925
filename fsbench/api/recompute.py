"""The commands and the environment that recompute an entry's results.

An entry holds the recipe of its backbones and the spec of each result, so the commands name them:
`fsbench pretrain ENTRY.json`, `fsbench benchmark --spec ENTRY:COLUMN`. Nothing is executed here,
the command line of the submitter is not used, and every argument is one word, quoted for a
POSIX shell.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from fsbench.backbones.base import IN_MEMORY
from fsbench.core.errors import FsbenchError, ValidationFailed
from fsbench.core.schema import BackboneFacts, Provenance, find_code
from fsbench.core.specs import FeatureSpec
from fsbench.core.tasks import FOLDER, HUB, TaskId
from fsbench.results import provenance
from fsbench.results.entry import ENTRY_FILE, Loaded
from leaderboard.store import BoardEntry
from pretrain.recipes.recipe import Recipe

Command = tuple[str, ...]
PLAIN = re.compile(r"[A-Za-z0-9][\w.+!-]*", re.ASCII)
"""Names and versions of packages that pip may be told to install."""
COMMIT = re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True)
class EnvironmentCommands:
    """The commands for the results that were computed in one environment.

    commit: of the code that computed them; constraints: versions of its packages, for pip.
    """

    environment: dict[str, str]
    constraints: list[str]
    commands: list[Command]
    notes: list[str]
    commit: str

    def script(self) -> str:
        """Return lines for a POSIX shell.

        Checking out the commit stays a comment: it may be older than the options used here.
        """
        environment = ", ".join(f"{k} {v}" for k, v in self.environment.items())
        lines = [f"# {environment}", *(f"# note: {note}" for note in self.notes)]
        if self.commit:
            lines.append(f"# computed by the code of: git checkout {self.commit}")
        if self.constraints:
            lines.append(f"printf '%s\\n' {shlex.join(self.constraints)} > constraints.txt")
            lines.append("python -m pip install --constraint=constraints.txt .")
        return "\n".join([*lines, *map(shlex.join, self.commands)]) + "\n"


def recompute(entry: BoardEntry, board: str) -> list[EnvironmentCommands]:
    """Return the commands of every network and environment.

    Raises ValidationFailed for results of code of the submitter.
    """
    groups: dict[str, list[Loaded]] = {}
    for loaded in entry.loaded:
        made, facts = loaded.result.provenance, loaded.result.backbone
        is_code = facts.source == IN_MEMORY or facts.runs_code
        code = facts.ref if is_code else find_code(facts.training and facts.training.recipe)
        if code is not None:
            raise ValidationFailed(
                f"'{entry.name}' is computed by code of its author: {code[:100]!r}",
                fix="ask for that code and read it first; no command that runs it is printed",
            )
        key = f"{facts.identity} {describe_environment(made)} {sorted(made.packages.items())}"
        groups.setdefault(key, []).append(loaded)
    has_seeds = len(entry.networks) > 1
    return [make_commands(entry.name, group, board, has_seeds) for group in groups.values()]


def make_commands(
    name: str, results: Sequence[Loaded], board: str, has_seeds: bool
) -> EnvironmentCommands:
    """Return the commands for results of one network and environment of an entry."""
    made, facts = results[0].result.provenance, results[0].result.backbone
    notes: list[str] = []
    commands: list[Command] = []
    commit = (made.git_commit or "").removesuffix("-dirty")
    if made.git_commit != commit:
        notes.append("the code had uncommitted changes, or its commit is unknown")
    ref, recipe = facts.ref, recipe_of(facts)
    if recipe is not None:
        seed = [f"--set=seed={recipe.seed}"] if has_seeds else []
        path = str(results[0].folder / ENTRY_FILE)
        commands.append(("fsbench", "pretrain", path, *seed, "--output=runs"))
        ref = f"run:runs/{recipe.label}"
    elif facts.recipe is not None:
        notes.append(
            f"the results do not hold the recipe {facts.recipe} ({facts.recipe_digest}) in a "
            "form that this version reads: pretrain it yourself"
        )
    network = [f"--arch={facts.architecture}"] if facts.source == "file" else []
    network += [] if facts.random_init is None else [f"--random-init={facts.random_init}"]
    machine = [f"--threads={made.threads}", f"--device={'cpu' if made.device == 'cpu' else 'cuda'}"]
    machine += [] if made.batch_size is None else [f"--batch-size={made.batch_size}"]
    for chosen in list_evaluations(results, notes):
        arguments = (*network, *feature_options(facts.feature_spec), *chosen, *machine)
        commands.append(("fsbench", "benchmark", f"--model={ref}", *arguments, "--output=results"))
    arguments = (f"--model={facts.ref}", *network, f"--board={board}")
    commands.append(("fsbench", "leaderboard", "verify", name, *arguments))
    constraints = [
        f"{package}=={version}"
        for package, version in sorted(made.packages.items())
        if PLAIN.fullmatch(package) and PLAIN.fullmatch(version)
    ]
    checkout = commit if COMMIT.fullmatch(commit) else ""
    return EnvironmentCommands(describe_environment(made), constraints, commands, notes, checkout)


def recipe_of(facts: BackboneFacts) -> Recipe | None:
    """Return the recipe that the results hold, None if its digest is not the recorded one."""
    try:
        recipe = Recipe.model_validate(facts.training and facts.training.recipe)
    except (FsbenchError, ValidationError):  # of another version of fsbench
        return None
    return recipe if recipe.digest() == facts.recipe_digest else None


def list_evaluations(results: Sequence[Loaded], notes: list[str]) -> list[Command]:
    """Return the options of commands that evaluate results, without model and machine.

    One command takes one spec of each task. Images of the submitter have a command of their own,
    and a note.
    """
    groups: dict[tuple[str, int], list[str]] = {}
    repeats = Counter[TaskId]()
    for loaded in results:
        task, name = loaded.result.task, loaded.result.dataset.name
        images = name if name.startswith(("folder-", "hub-")) else ""
        groups.setdefault((images, repeats[task]), []).append(f"--spec={loaded}")
        repeats[task] += 1
    commands: list[Command] = []
    for (name, _), specs in groups.items():
        images = ""
        if name.startswith("hub-"):
            notes.append(f"{name} is a data set of the hub: complete its reference")
            images = f"{HUB}ORG/NAME?split=NAME"
        elif name:
            notes.append(f"{name} is a folder of the submitter: replace DIR by its path")
            images = f"{FOLDER}DIR"
        commands.append((*([f"--tasks={images}"] if images else []), *specs))
    return commands


def describe_environment(made: Provenance) -> dict[str, str]:
    """Return software and machine, with all that equal bits depend on."""
    software = {"fsbench": made.fsbench, "commit": made.git_commit or "unknown"}
    machine = {"python": made.python, "platform": made.platform}
    return software | machine | provenance.environment_of(made)


def feature_options(spec: FeatureSpec) -> Iterator[str]:
    """Yield the options that choose how features are taken."""
    for name, value in spec.model_dump(mode="json").items():
        text = ",".join(map(str, value)) if name in {"mean", "std"} else value
        yield "--features=head" if name == "head" else f"--{name}={text}"

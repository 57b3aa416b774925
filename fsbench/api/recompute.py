"""The commands and the environment that recompute an entry's results.

An entry holds the recipe of its backbones and the spec of each result, so the commands name them:
`fsbench pretrain ENTRY.json`, `fsbench episodic --spec ENTRY:COLUMN`. Nothing is executed here, the
command line that a submitter recorded is not used, and every argument is one word, quoted for a
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
from fsbench.core.specs import EpisodicSpec, FeatureSpec
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
            pins = " ".join(shlex.quote(pin) for pin in self.constraints)
            lines.append(f"printf '%s\\n' {pins} > constraints.txt")
            lines.append("python -m pip install --constraint=constraints.txt .")
        return "\n".join([*lines, *(shlex.join(command) for command in self.commands)]) + "\n"


def recompute(entry: BoardEntry, board: str) -> list[EnvironmentCommands]:
    """Return the commands of every network and environment. Raise ValidationFailed for `py:`."""
    groups: dict[str, list[Loaded]] = {}
    for cell in entry.cells:
        require_harmless(entry.name, cell.result.backbone)
        made, network = cell.result.provenance, cell.result.backbone.identity
        key = f"{network} {describe_environment(made)} {sorted(made.packages.items())}"
        groups.setdefault(key, []).append(cell)
    several = len(entry.networks) > 1
    return [make_commands(entry.name, cells, board, several) for cells in groups.values()]


def require_harmless(name: str, facts: BackboneFacts) -> None:
    """Raise ValidationFailed for texts that must not be proposed as a command."""
    if facts.source == IN_MEMORY:
        raise ValidationFailed(
            f"'{name}' is computed by a module in the memory of its author: {facts.ref[:100]!r}",
            fix="ask its author for the weights; no command can load it",
        )
    code = facts.ref if facts.runs_code else find_code(facts.training and facts.training.recipe)
    if code is not None:
        raise ValidationFailed(
            f"'{name}' is computed by code of its author: {code[:100]!r}",
            fix="read that code first; no command that runs it is printed",
        )


def make_commands(
    name: str, cells: Sequence[Loaded], board: str, several: bool
) -> EnvironmentCommands:
    """Return the commands for results of one environment. several: whether of several seeds."""
    made, facts = cells[0].result.provenance, cells[0].result.backbone
    notes: list[str] = []
    commands: list[Command] = []
    commit = (made.git_commit or "").removesuffix("-dirty")
    if made.git_commit != commit:
        notes.append("the code had uncommitted changes, or its commit is unknown")
    ref, recipe = facts.ref, recipe_of(facts)
    if recipe is not None:
        chosen = [f"--set=seed={recipe.seed}"] if several else []
        path = str(cells[0].folder / ENTRY_FILE)
        commands.append(("fsbench", "pretrain", path, *chosen, "--output=runs"))
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
    for kind, *chosen in evaluations(cells, notes):
        words = (*network, *feature_options(facts.feature_spec), *chosen, *machine)
        commands.append(("fsbench", kind, f"--model={ref}", *words, "--output=results"))
    words = (f"--model={facts.ref}", *network, f"--board={board}")
    commands.append(("fsbench", "leaderboard", "verify", name, *words))
    constraints = [
        f"{package}=={version}"
        for package, version in sorted(made.packages.items())
        if PLAIN.fullmatch(package) and PLAIN.fullmatch(version)
    ]
    stated = commit if COMMIT.fullmatch(commit) else ""
    return EnvironmentCommands(describe_environment(made), constraints, commands, notes, stated)


def recipe_of(facts: BackboneFacts) -> Recipe | None:
    """Return the recipe that the results hold, None if its digest is not the recorded one."""
    if facts.training is None:
        return None
    try:
        recipe = Recipe.model_validate(facts.training.recipe)
    except (FsbenchError, ValidationError):  # of another version of fsbench
        return None
    return recipe if recipe.digest() == facts.recipe_digest else None


def evaluations(cells: Sequence[Loaded], notes: list[str]) -> list[Command]:
    """Return commands without model and machine: results that one command can evaluate together.

    One command takes few-shot results with equal numbers of episodes, or probes, and one spec per
    task. Images of the submitter have a command of their own, and a note.
    """
    groups: dict[tuple[int, str, bool, int], list[Loaded]] = {}
    repeats: Counter[TaskId] = Counter()
    for cell in cells:
        result, name = cell.result, cell.result.dataset.name
        repeats[result.task] += 1
        episodes = result.score.n if isinstance(result.spec, EpisodicSpec) else 0
        own_images = name if name.startswith(("folder-", "hub-")) else ""
        key = (episodes, own_images, "limited" in result.flags, repeats[result.task])
        groups.setdefault(key, []).append(cell)
    commands = []
    for (episodes, name, _, _), members in groups.items():
        tasks = []
        if name:
            is_hub = name.startswith("hub-")
            what = "a data set of the hub: complete its reference"
            folder_note = "a folder of the submitter: replace DIR by its path"
            notes.append(f"{name} is {what if is_hub else folder_note}")
            tasks = [f"--tasks={HUB}ORG/NAME?split=NAME" if is_hub else f"--tasks={FOLDER}DIR"]
        specs = (f"--spec={cell.where}" for cell in members)
        commands.append(("episodic" if episodes else "probe", *tasks, *specs))
    return commands


def describe_environment(made: Provenance) -> dict[str, str]:
    """Return software and machine, with all that equal bits depend on."""
    software = {"fsbench": made.fsbench, "commit": made.git_commit or "unknown"}
    machine = {"python": made.python, "platform": made.platform}
    return software | machine | provenance.environment_of(made)


def feature_options(spec: FeatureSpec) -> Iterator[str]:
    """Yield the options that choose how features are taken."""
    values = spec.model_dump(mode="json")
    for name, value in values.items():
        if name == "head":
            yield "--features=head"
        else:
            yield f"--{name}={','.join(map(str, value)) if name in {'mean', 'std'} else value}"

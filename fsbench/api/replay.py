"""The commands and the environment that make an entry's results again.

They follow from the entry's facts and specs, never from the command line that its maker recorded,
and each is held against the specs that it must give. Nothing here is executed; every argument is
one word `--option=value`, quoted for a POSIX shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fsbench.api import retraining
from fsbench.api.request import (
    PROBE_FIELDS,
    PROBE_PREFIX,
    EvaluationRequest,
    ProbeSettings,
    parse_head_settings,
    parse_probe_settings,
    parse_tasks,
)
from fsbench.core.errors import FsbenchError, ValidationFailed
from fsbench.core.schema import BackboneFacts, Provenance, Result
from fsbench.core.specs import EpisodicSpec, Spec
from fsbench.core.tasks import FOLDER, Options
from leaderboard.board.board import BoardEntry

Command = tuple[str, ...]
PLAIN = re.compile(r"[A-Za-z0-9][\w.+!-]*", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{7,40}")
DIRTY = "-dirty"


@dataclass
class Replay:
    """One environment with the commands of the results that were made in it."""

    environment: dict[str, str]
    constraints: list[str]
    commands: list[Command]
    notes: list[str] = field(default_factory=list)
    commit: str = ""

    def as_json(self) -> dict[str, Any]:
        commands = [list(command) for command in self.commands]
        return {
            "environment": self.environment,
            "checkout": self.commit or None,
            "constraints": self.constraints,
            "commands": commands,
            "notes": self.notes,
        }

    def script(self) -> str:
        """Lines for a POSIX shell; what is not printable is refused before (`replays`)."""
        environment = ", ".join(f"{k} {v}" for k, v in self.environment.items())
        lines = [f"# {environment}", *(f"# note: {note}" for note in self.notes)]
        if self.commit:
            lines.append(shlex.join(("git", "checkout", self.commit)))
        if self.constraints:
            pins = " ".join(shlex.quote(pin) for pin in self.constraints)
            lines.append(f"printf '%s\\n' {pins} > constraints.txt")
            lines.append("python -m pip install --constraint=constraints.txt .")
        return "\n".join([*lines, *(shlex.join(command) for command in self.commands)]) + "\n"


def replays(entry: BoardEntry, board: str) -> list[Replay]:
    """One a machine that results were made on. Raises ValidationFailed for an entry whose texts
    could do harm where they are printed or pasted: control characters, or `py:` code."""
    groups: dict[str, list[Result]] = {}
    for cell in entry.cells:
        made = cell.result.provenance
        require_harmless(entry.name, cell.result)
        key = f"{environment(made)} {sorted(made.packages.items())}"
        groups.setdefault(key, []).append(cell.result)
    return [replay(entry.name, results, board) for results in groups.values()]


def require_harmless(name: str, result: Result) -> None:
    made, facts = result.provenance, result.backbone
    texts = [facts.ref, facts.architecture, facts.recipe or "", str(result.task), *made.packages]
    texts += [*environment(made).values(), *made.packages.values()]
    if bad := [text for text in texts if not text.isprintable()]:
        raise ValidationFailed(
            f"'{name}' holds control characters: {bad[0][:60]!r}",
            fix="fsbench leaderboard check lists all that is wrong with the board",
        )
    if name.startswith("-"):
        raise ValidationFailed(f"'{name}' would pass for an option", fix="rename the entry")
    if facts.source == "py" or facts.ref.startswith("py:"):
        raise ValidationFailed(
            f"'{name}' is made by code of its author: {facts.ref[:100]!r}",
            fix="read that code first; no command is printed that runs it",
        )


def replay(name: str, results: Sequence[Result], board: str) -> Replay:
    made, facts = results[0].provenance, results[0].backbone
    pins = {p: v for p, v in sorted(made.packages.items()) if PLAIN.fullmatch(p)}
    pins = {p: v for p, v in pins.items() if PLAIN.fullmatch(v)}
    found = Replay(environment(made), [f"{p}=={v}" for p, v in pins.items()], [])
    commit = (made.git_commit or "").removesuffix(DIRTY)
    if COMMIT.fullmatch(commit):
        found.commit = commit
    if made.git_commit != commit:
        found.notes.append("the checkout held changes that were not committed, or none is known")
    trained, ref = pretraining(facts, found.notes)
    found.commands += trained
    model = [f"--model={ref}", *weights(facts)]
    for options, tasks in evaluations(results, found.notes).items():
        kind, *rest = options
        words = (*model, f"--tasks={','.join(tasks)}", *rest, *machine(made))
        found.commands.append(("fsbench", kind, *words, "--output=results"))
    own = ("fsbench", "leaderboard", "verify", name, f"--model={facts.ref}", *weights(facts))
    found.commands.append((*own, f"--board={board}"))
    return found


def environment(made: Provenance) -> dict[str, str]:
    return {
        "fsbench": made.fsbench,
        "commit": made.git_commit or "unknown",
        "python": made.python,
        "platform": made.platform,
        "device": made.device,
        "cpu capability": made.cpu_capability,
        "threads": str(made.threads),
        **({"batch size": str(made.batch_size)} if made.batch_size else {}),
    }


def machine(made: Provenance) -> Iterator[str]:
    yield f"--threads={made.threads}"
    yield f"--device={'cpu' if made.device == 'cpu' else 'cuda'}"
    if made.batch_size is not None:
        yield f"--batch-size={made.batch_size}"


def weights(facts: BackboneFacts) -> list[str]:
    """Options that say which weights, beside the reference."""
    arch = [f"--arch={facts.architecture}"] if facts.source == "file" else []
    seed = [] if facts.random_init is None else [f"--random-init={facts.random_init}"]
    return [*arch, *seed]


def pretraining(facts: BackboneFacts, notes: list[str]) -> tuple[list[Command], str]:
    """The command that trains the weights, where a recipe of this version does, and their
    reference; else a note and the reference as the entry has it."""
    if facts.recipe is None:
        return [], facts.ref
    found = retraining.command(facts)
    if found is None:
        notes.append(f"recipe {facts.recipe} is not the run's ({facts.recipe_digest}): no command")
        return [], facts.ref
    command, recipe = found
    return [command], f"run:runs/{recipe.label}"


def evaluations(results: Sequence[Result], notes: list[str]) -> dict[Command, list[str]]:
    """Command and its options -> tasks, of all results that options can give."""
    found: dict[Command, list[str]] = {}
    for result in results:
        options = (*kind_of(result.spec), *sizes(result))
        task, own = result.task, result.dataset.name.startswith("folder-")
        if own:
            task = replace(task, dataset=f"{FOLDER}DIR")
            notes.append(f"{result.dataset.name} is a folder of its maker's own: put it for DIR")
        if not own and again(options, result) != result.spec:
            notes.append(f"{result.column}: no options give its spec {result.spec_digest}")
        else:
            found.setdefault(options, []).append(str(task))
    return found


def kind_of(spec: Spec) -> Iterator[str]:
    """The command, then options for all that differs from its defaults."""
    yield "episodic" if isinstance(spec, EpisodicSpec) else "probe"
    if isinstance(spec, EpisodicSpec):
        yield from (f"--bn-mode={spec.bn_mode}",) if spec.bn_mode != "eval" else ()
        yield from changed(spec.adaptation, spec.fitted, spec.fitted and type(spec.fitted)())
    else:
        default = type(spec)()
        names = [name for name in PROBE_FIELDS[spec.kind] if hasattr(spec, name)]
        yield from changed(PROBE_PREFIX, spec, default, names)


def changed(
    prefix: str, spec: Any, default: Any, names: Sequence[str] | None = None
) -> Iterator[str]:
    """`--set` of every field that is not the default's."""
    for name in names or (type(spec).model_fields if spec is not None else ()):
        value = getattr(spec, name)
        if value != getattr(default, name) and value is not None:
            yield f"--set={prefix}.{name}={value}"


def sizes(result: Result) -> Iterator[str]:
    spec = result.spec
    yield f"--input-size={spec.image.input_size}"
    if isinstance(spec, EpisodicSpec):
        yield f"--episodes={result.score.n}"
        yield f"--seed={spec.episode.seed}"
    elif spec.kind == "probe":
        yield f"--seed={spec.seed}"
    if "limited" in result.flags:
        yield f"--limit={spec.epochs if spec.kind == 'probe' else result.score.n}"


def again(options: Sequence[str], result: Result) -> Spec | None:
    """The spec that the command gives, read as the command reads it; None where it refuses."""
    given = [option[2:].partition("=") for option in options[1:]]
    one = {name: value for name, _, value in given if name != "set"}
    sets = [value for name, _, value in given if name == "set"]
    try:
        (task,) = parse_tasks([str(result.task)], Options())
        request = EvaluationRequest(
            (task,),
            input_size=int(one["input-size"]),
            episodes=int(one.get("episodes", 600)),
            limit=int(one["limit"]) if "limit" in one else None,
            seed=int(one.get("seed", 0)),
            bn_mode=one.get("bn-mode", "eval"),
            settings=parse_head_settings(sets),
            probing=parse_probe_settings(sets) if sets else ProbeSettings(),
        )
        return request.spec(task, result.backbone.input_size)
    except FsbenchError:
        return None

"""`fsbench benchmark`, `episodic` and `probe`: evaluate frozen backbones."""

from collections.abc import Callable, Collection
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsbench.api.options import EvaluationOptions
from fsbench.cli import options
from fsbench.cli.main import PANELS

if TYPE_CHECKING:
    from fsbench.core.tasks import Kind

FEW_SHOT = (
    *("shots", "way", "n_query", "heads", "bn_mode", "protocol", "episodes", "spec", "name"),
    "shard",
)
"""Options that a probe does not have."""
COMMANDS: "dict[str, tuple[tuple[Kind, ...], str]]" = {
    "benchmark": (("probe", "episodic"), "eurosat,pets"),
    "episodic": (("episodic",), "eurosat:5w5s --heads linear,ridge"),
    "probe": (("probe",), "eurosat"),
}
"""Name -> kinds of tasks, and the tasks of its example."""


def register(app: typer.Typer) -> None:
    for name, (kinds, task) in COMMANDS.items():
        example = f"Example: fsbench {name} -m timm/resnet18.a1_in1k -t {task} --data DATA"
        command = evaluation_command(kinds, FEW_SHOT if name == "probe" else ())
        app.command(name, help=PANELS["Evaluate"][name], epilog=example)(command)


def evaluation_command(kinds: "tuple[Kind, ...]", without: Collection[str]) -> Callable[..., None]:
    """Return a command that evaluates these kinds of tasks, with all options but `without`."""

    def command(**values: Any) -> None:
        import fsbench
        from fsbench.cli import console
        from fsbench.cli.show import print_results
        from fsbench.core.distributed import is_first_process

        as_json, _ = values.pop("as_json"), values.pop("config")
        stated = {name: value for name, value in values.items() if value not in (None, [], False)}
        folder = stated.setdefault("output", "results")
        results = fsbench.evaluate(kinds=kinds, **stated)
        if is_first_process():  # under torchrun the first process alone
            print_results(results, as_json=as_json, models=results.models)
            console.log(f"saved to {folder}/; next: fsbench show {folder}")

    config = Annotated[Path | None, options.config_option(EvaluationOptions)]
    parameters = [
        *options.declare_all(EvaluationOptions, without),
        Parameter("as_json", Parameter.KEYWORD_ONLY, annotation=options.Json, default=False),
        Parameter("config", Parameter.KEYWORD_ONLY, annotation=config, default=None),
    ]
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return command

"""`fsbench pretrain`: pretrain a backbone by a recipe."""

from fsbench.api.options import Machine, PretrainOptions
from fsbench.cli import console, options
from fsbench.core.options import split_values

EVALUATION = ("batch_size", "workers", "cache_size", "features_device")
"""Options of features, which training does not have."""


@options.command("pretrain", PretrainOptions, without=EVALUATION, has_config=True)
def pretrain(chosen: PretrainOptions, as_json: options.Json = False) -> None:
    """Pretrain a backbone by a recipe, or resume a stopped run; run:FOLDER is its reference.

    With several processes: torchrun --nproc-per-node N -m fsbench pretrain ...
    """
    from fsbench.api.pretrain import pretrain as run_pretraining
    from fsbench.core.process import is_first_process

    run = run_pretraining(**vars(chosen))
    if not is_first_process():
        return
    if as_json:
        console.emit_json({**run.record, "folder": str(run.folder)})
        return
    plan, tasks, measure = run.recipe.plan, run.record.get("episodic_tasks"), "val accuracy %"
    if run.record["source_accuracy"] is None and tasks:
        measure = f"{tasks['way']}-way {tasks['shots']}-shot accuracy %"
    test = run.record.get("test_accuracy")
    row = {
        "recipe": run.recipe.name,
        "source": str(run.record["source"]),
        "rounds x epochs": f"{plan.total_rounds} x {plan.epochs}",
        "steps": str(run.record["steps"]),
        measure: f"{100 * run.accuracy:.2f}",
        **({} if test is None else {"test %": f"{100 * test:.2f}"}),
        "weights": run.record["weights_hash"][:12],
        "run": run.ref,
    }
    console.table("pretrained", list(row), [list(row.values())])
    follow = console.suggest("benchmark", "-m", run.ref, *benchmark_options(row["source"], chosen))
    console.log(f"saved to {run.folder}/; {follow}")


def benchmark_options(source: str, machine: Machine) -> list[str]:
    """Return the data sets of a benchmark that are on this machine, generated ones if none is."""
    from fsbench.data import TARGETS, dataset_groups

    official = dataset_groups()["cdfsl"]
    present = [name for name in official if machine.roots.find(TARGETS.load(name).FACTS)]
    if source.startswith("toy_") or not present:
        return ["-t", "toy", "--shots", "1,5"]
    tasks = [] if len(present) == len(official) else ["-t", ",".join(present)]
    return [*tasks, *(f"--data={folder}" for folder in split_values(machine.data))]

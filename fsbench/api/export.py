"""Export results and runs in the formats of the Hugging Face hub and of timm.

`export_results` writes a section of the model card and, for a benchmark that the hub hosts,
`.eval_results/fsbench.yaml` (https://huggingface.co/docs/hub/eval-results). `export_run` writes a
folder for `timm.create_model("local-dir:DIR", pretrained=True)`: config.json, model.safetensors and
a card, to which `export_results` adds the numbers.
"""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.io import write_atomic
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts, Result
from fsbench.core.specs import PROTOCOL_SIZE, EpisodicSpec, choose_resolution
from fsbench.core.tables import TextTable
from fsbench.results.names import model_name
from fsbench.results.table import format_score
from fsbench.results.verification import read_loaded
from leaderboard.render.md import render_table
from leaderboard.render.notes import to_percent

if TYPE_CHECKING:
    from fsbench.backbones.base import Backbone
    from fsbench.backbones.sources.run import RunRecord

EVAL_FILE, CARD = ".eval_results/fsbench.yaml", "README.md"
BEGIN, END = "<!-- fsbench -->", "<!-- end of fsbench -->"
"""Marks around the section of a model card, which a later export replaces."""
NATIVE: dict[tuple[str, int], tuple[str, dict[str, Any]]] = {
    ("seal_resnet50", 64): ("resnet50", {}),
    ("resnet50", 64): ("resnet50", {"norm_layer": "groupnorm1"}),
}
"""Architecture and width -> timm's name and arguments of the same network."""
TOLERANCE = 1e-5
"""Of timm's features, as a share of the largest one: its pooling may add up in another order."""


def export_results(results: Path, folder: Path, *, benchmark: str | None = None) -> list[Path]:
    """Write the results of one model for its repository on the hub; return the files.

    benchmark: the hub's data set that hosts the benchmark, ORG/NAME, for the file of evaluation
    results. Raises UsageError for results of several models, ValidationFailed.
    """
    loaded = list(read_loaded(results))
    models = {(x.model, x.result.backbone.identity) for x in loaded}
    if len(models) != 1:
        listed = ", ".join(sorted({name for name, _ in models}))
        raise UsageError(
            f"{results} holds several models: {listed}", fix="give the folder of one model"
        )
    chosen = sorted((x.result for x in loaded), key=lambda result: result.column)
    files = [write_card(folder, chosen)]
    return [*files, *([write_eval_results(folder, chosen, benchmark)] if benchmark else [])]


def write_eval_results(folder: Path, results: Sequence[Result], benchmark: str) -> Path:
    """Write the hub's file of evaluation results, accuracies in percent."""
    import yaml

    entries = [
        {
            "dataset": {"id": benchmark, "task_id": re.sub(r"[ :/@]", "-", str(result.column))},
            "value": float(to_percent(result.score.mean)),
            "date": result.provenance.started[:10],
            "notes": f"{result.column}: {describe_score(result)} %",
        }
        for result in results
    ]
    path = folder / EVAL_FILE
    write_atomic(path, yaml.safe_dump(entries, sort_keys=False, allow_unicode=True).encode())
    return path


def describe_score(result: Result) -> str:
    """Return the accuracy (%) with its interval, what it is over, and why it is not official."""
    unit = "episodes" if isinstance(result.spec, EpisodicSpec) else "test images"
    flags = f" ({', '.join(result.flags)})" if result.flags else ""
    return f"{format_score(result.score)} over {result.score.n} {unit}{flags}"


def write_card(folder: Path, results: Sequence[Result]) -> Path:
    """Write the section of a model card; its other parts stay as they are."""
    path = folder / CARD
    name = model_name(results[0].backbone)
    text = path.read_text("utf8") if path.is_file() else begin_card("fsbench", name)
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2] or "\n"
    section = f"{BEGIN}\n{render_section(results)}\n{END}"
    write_atomic(path, f"{before.rstrip()}\n\n{section}{after}".encode())
    return path


def begin_card(library: str, name: str) -> str:
    """Return the front matter and title of a new model card."""
    tags = "fsbench, few-shot-learning"
    return f"---\nlibrary_name: {library}\ntags: [{tags}]\n---\n\n# {name}\n"


def render_section(results: Sequence[Result]) -> str:
    """Return the section of a model card as Markdown."""
    rows = tuple((str(result.column), describe_score(result)) for result in results)
    facts, version = results[0].backbone, results[0].provenance.fsbench
    note = (
        "± is the 95 % interval over episodes or test images, not over pretraining seeds. Weights "
        f"{facts.weights_hash[:12]}, frozen; features: {facts.features}; fsbench {version}."
    )
    return render_table(TextTable("Evaluation by fsbench", ("task", "accuracy (%)"), rows, note))


def export_run(run: Path, folder: Path, *, report: Reporter = SILENT) -> list[Path]:
    """Write a run of `fsbench pretrain` as a folder for timm; return the files.

    The folder is loaded back, and its features are compared with those of the run. Raises
    UsageError for a network that cannot be exported, CheckpointError.
    """
    from fsbench.backbones.loading import load_backbone
    from fsbench.backbones.sources import run as runs
    from fsbench.core.seeding import stream
    from pretrain.training.checkpoint import write_tensors

    backbone = load_backbone(f"run:{run}", report=report)
    with stream("random-init", 0):
        model, record = runs.load_run_network(run)
    name, arguments = find_network(record)
    head = record.network.roles(model).head
    config = make_config(record, backbone.facts, name, arguments, head)
    weights = {key: tensor.contiguous() for key, tensor in model.state_dict().items()}
    with TemporaryDirectory() as temporary:
        write_tensors(Path(temporary, "model.safetensors"), weights)
        Path(temporary, "config.json").write_text(json.dumps(config, indent=1), "utf8")
        check_export(temporary, backbone)
        shutil.copytree(temporary, folder, dirs_exist_ok=True)
    card = folder / CARD
    if not card.exists():
        text = begin_card("timm", model_name(backbone.facts)) + introduce(record, name)
        write_atomic(card, text.encode())
    return [folder / "config.json", folder / "model.safetensors", card]


def find_network(record: "RunRecord") -> tuple[str, dict[str, Any]]:
    """Return the network of a run in timm: its name and its arguments.

    Networks that timm lacks have the name under which `register_in_timm` registers them. Raises
    UsageError for a network of timm that a method changed.
    """
    from fsbench.backbones.networks import TIMM_NAME, load_architecture

    architecture = load_architecture(record.name)
    width = record.width or architecture.default_width
    if record.name.startswith("timm/"):
        if record.normalizers:
            raise UsageError(
                f"the method of this run put normalisers into {record.name}; timm has none",
                fix="evaluate it as run:DIR",
            )
        sized = {"img_size": record.input_size} if architecture.fixed_input else {}
        return record.name.removeprefix("timm/"), sized
    if not record.normalizers and (record.name, width) in NATIVE:
        return NATIVE[record.name, width]
    arguments = {"width": width, "side": record.input_size, "normalizers": record.normalizers}
    return TIMM_NAME + record.name, arguments


def make_config(
    record: "RunRecord", facts: BackboneFacts, name: str, arguments: dict[str, Any], head: str
) -> dict[str, Any]:
    """Return config.json as timm reads it."""
    side = record.input_size
    evaluated = facts.evaluation_size or choose_resolution(side)
    return {
        "architecture": name,
        "num_classes": record.n_classes,
        "num_features": facts.feature_dim,
        "model_args": arguments,
        "pretrained_cfg": {
            "custom_load": False,
            "input_size": [3, side, side],
            "test_input_size": [3, evaluated, evaluated],
            "interpolation": "bilinear",
            "crop_pct": evaluated / int(1.15 * evaluated),
            "crop_mode": "center",
            "mean": facts.mean,
            "std": facts.std,
            "num_classes": record.n_classes,
            "classifier": head,
        },
    }


def check_export(folder: str, backbone: "Backbone") -> None:
    """Load an exported folder by timm. Raises CheckpointError if its features are others."""
    import timm
    import torch

    from fsbench.backbones.base import fixed_images
    from fsbench.backbones.networks import register_in_timm

    register_in_timm()
    loaded = timm.create_model(f"local-dir:{folder}", pretrained=True, num_classes=0).eval()
    images = fixed_images(backbone.facts.input_size or PROTOCOL_SIZE)
    with torch.no_grad():
        expected, actual = backbone.module(images), loaded(images)
    if not (actual - expected).abs().max() <= TOLERANCE * expected.abs().max():
        raise CheckpointError(
            f"timm's {backbone.facts.architecture} gives other features than the run",
            fix="evaluate it as run:DIR, and report this",
        )


def introduce(record: "RunRecord", name: str) -> str:
    """Return the text of a new model card: what the weights are, and how timm loads them."""
    from fsbench.backbones.networks import TIMM_NAME

    code = [
        "import timm",
        'model = timm.create_model("local-dir:DIR", pretrained=True, num_classes=0).eval()',
        "config = timm.data.resolve_model_data_config(model, use_test_size=True)",
        "transform = timm.data.create_transform(**config)",
    ]
    if name.startswith(TIMM_NAME):
        code[1:1] = [
            "from fsbench.backbones.networks import register_in_timm",
            "",
            f"register_in_timm()  # timm has no {record.name}; fsbench adds it",
        ]
    return (
        f"\n{record.architecture}, trained by the recipe {record.recipe} of fsbench on "
        f"{record.source} ({record.n_classes} classes, {record.steps} steps).\n\n"
        + "\n".join(["```python", *code, "```", ""])
    )

"""Methods and heads in files of the user, as the READMEs show them."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import fakes
from support.cases import read_cases
from support.cli import CommandLine
from torch import nn

import fsbench
from fsbench.core import registry
from fsbench.core.errors import FsbenchError, UsageError
from fsbench.results.entry import ENTRY_FILE
from fsbench.results.verification import read_loaded
from pretrain.method import HOOKS
from pretrain.recipes.recipe import METHODS

ROOT = Path(__file__).resolve().parents[2]
SHORT = ("plan.rounds=1", "plan.epochs=1", "plan.epoch_images=64", "width=2")
STATED: dict[str, Any] = {"input_size": 32, "mean": "imagenet", "std": "imagenet", "pool": "avg"}
QUICK: dict[str, Any] = {"episodes": 4, "input_size": 32, "progress": False}
CONTROL = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "32")
TASK = ("-t", "toy_tiles:2w2s", "--episodes", "4")
CODE = read_cases("code")
HEAD_TEXT, NETWORK_TEXT, METHOD_TEXT = (CODE[name] for name in ("head", "network", "method"))
BROKEN = {
    "method": (
        "from pretrain.recipes.recipe import ActingOrder\nRANK = ActingOrder.LAST",
        ["pretrain", "toy/normal", "--method", "py:broken.py:Broken"],
        "ActingOrder has no LAST; it has INIT, REPARAMETRIZATION, ROUND, STEP (broken.py, line 2)",
    ),
    "head": (
        "def fit(settings, support):\n    return settings.lam",
        ["episodic", *CONTROL, *TASK, "--heads", "py:broken.py:fit"],
        "Settings_fit has no lam; ",
    ),
    "backbone": (
        "import torch\ndef net():\n    return torch.nn.Lineer(3, 2)",
        ["episodic", "-m", "py:broken:net", *TASK],
        "torch.nn has no Lineer; it has Linear",
    ),
}


def write_example(page: str, name: str, folder: Path) -> Path:
    """Write the file that a README shows after <!-- file: NAME -->."""
    text = (ROOT / page).read_text(encoding="utf8")
    (code,) = re.findall(rf"<!-- file: {name} -->\n```python\n(.*?)^```", text, re.S | re.M)
    assert len([line for line in code.splitlines() if line]) <= 14
    (folder / name).write_text(code)
    return folder / name


def sha256_of_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_CUSTOM", {})
    return tmp_path


def pretrain(*settings: str, output: str | None = None, method: str | None = None) -> fsbench.Run:
    plan = ["plan.rounds=2", *SHORT[1:], *settings]
    return fsbench.pretrain("toy/normal", set=plan, output=output, method=method, progress=False)


@pytest.mark.parametrize(
    ("name", "reference", "neutral"),
    [
        ("centralize", "Centralize", "centralize.strength=0"),
        ("orthogonal", "Orthogonal", None),
        ("shrink", "Shrink", "shrink.factor=1"),
    ],
)
def test_the_methods_of_the_readme_act_where_it_says(
    folder: Path, name: str, reference: str, neutral: str | None
) -> None:
    file = write_example("pretrain/README.md", f"{name}.py", folder)
    code = f"py:{name}.py:{reference}"
    made, plain = pretrain(method=code), pretrain()
    assert made.record["weights_hash"] != plain.record["weights_hash"]
    (stored,) = made.recipe.model_dump(mode="json")["methods"]
    assert (stored["name"], stored["code"]) == (name, sha256_of_file(file))
    if neutral:
        still = pretrain(neutral, method=code, output="n")
        assert still.record["weights_hash"] == plain.record["weights_hash"]
    table = (ROOT / "pretrain/README.md").read_text().split("| hook |")[1].split("\n\n")[0]
    hooks = re.findall(r"^\| (`[^|]*) \|", table, re.M)
    assert tuple(re.findall(r"`(\w+)`", "".join(hooks))) == HOOKS


def test_a_run_resumes_with_the_same_file_alone(folder: Path) -> None:
    file, code = folder / "still.py", "py:still.py:Still"
    file.write_text(METHOD_TEXT)
    first = pretrain(method=code)
    recipe = first.folder / "recipe.json"
    assert fsbench.pretrain(recipe, method=code, progress=False).folder == first.folder
    file.write_text(f"{METHOD_TEXT}  # x\n")
    with pytest.raises(UsageError, match=r"differing: recipe.methods.still.code \w+ -> \w+"):
        pretrain(method=code)
    with pytest.raises(UsageError, match=r"custom code of a file with sha-256 .*differs from it"):
        fsbench.pretrain(recipe, progress=False)


@pytest.mark.parametrize(
    ("text", "reference", "message"),
    [
        ("", "py:other.py:A", "there is no file other.py"),
        ("class A: pass", "py:mine.py:A", "A is no method"),
        ("class A: pass", "py:mine.py:B", "unknown class or function of mine.py 'B'"),
        ("def f(: pass", "py:mine.py:A", "SyntaxError.*mine.py, line 1"),
        ("\n\nraise OSError('x')", "py:mine.py:A", "OSError: x .mine.py, line 3"),
        (
            METHOD_TEXT.replace("Still", "Seal"),
            "py:mine.py:Seal",
            "fsbench has the method .seal. already",
        ),
        (METHOD_TEXT.replace(" = 1.0", ""), "py:mine.py:Still", "lam .* no default"),
        (re.sub(".*SOURCE.*", "", METHOD_TEXT), "py:mine.py:Still", "SOURCE: ClassVar = "),
        (re.sub(".*RANK.*", "", METHOD_TEXT), "py:mine.py:Still", "RANK: ClassVar = ActingOrder"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_a_line(
    folder: Path, text: str, reference: str, message: str
) -> None:
    Path("mine.py").write_text(text)
    with pytest.raises(FsbenchError, match=message) as error:
        METHODS.add(reference)
    assert "\n" not in error.value.message


def test_the_head_of_the_readme_is_a_result_of_its_own_and_stays_readable(
    folder: Path, cli: CommandLine
) -> None:
    file = write_example("protocols/README.md", "power.py", folder)
    command = ["episodic", *CONTROL, *TASK, "-o", "out"]
    power = [*command, "--heads", "py:power.py:power_mean", "--set", "power_mean.power=1"]
    cli(*power)
    cli(*command, "--heads", "centroid")
    loaded = {one.result.task.head: one for one in read_loaded(Path("out"))}
    first, result = loaded["power_mean"], loaded["power_mean"].result
    # features after a ReLU and average pooling are not negative: power 1 is the nearest mean
    assert result.score.mean == loaded["centroid"].result.score.mean
    digest = sha256_of_file(file)
    assert result.custom_code == {"power_mean": digest}
    assert str(result.column).endswith(f"32px custom-code-{digest[:8]} power=1.0")
    file_of_entry = first.folder / ENTRY_FILE
    specs = json.loads(file_of_entry.read_text())["specs"]
    (stored,) = (s["fitted"] for s in specs if s["adaptation"] == "power_mean")
    assert stored == {"normalize": "none", "transductive": False, "code": digest, "power": 1.0}
    before = file_of_entry.read_bytes()
    cli(*power)
    assert file_of_entry.read_bytes() == before  # complete results are read
    file.write_text(file.read_text() + "# changed\n")
    cli(*power)
    results = [one.result for one in read_loaded(Path("out"))]
    assert len({str(r.column) for r in results if r.task.head == "power_mean"}) == 2


def test_results_of_a_head_are_read_without_its_file(folder: Path, cli: CommandLine) -> None:
    Path("mine.py").write_text(HEAD_TEXT)
    heads = ["py:mine.py:mine"]
    backbone = fsbench.Backbone.from_module(nn.Conv2d(3, 4, 5), name="t", **STATED)
    results = fsbench.evaluate(backbone, "toy_tiles:2w1s", heads=heads, output="out", **QUICK)
    stored = {"spec": results.paths[0], "progress": False}
    again = fsbench.evaluate(backbone, heads=heads, output="again", **stored)
    assert again[0].spec_digest == results[0].spec_digest
    registry._CUSTOM.clear()
    with pytest.raises(UsageError, match=r"code of a file with sha-256 .*\n.*--heads py:FILE"):
        fsbench.evaluate("fsbench/toy_resnet", **stored)
    (row,) = cli.json("show", "out")
    assert row["spec_digest"] == results[0].spec_digest
    assert row["task"] == "toy_tiles:2w1s/mine@ibm"


def test_official_boards_lack_the_head_and_others_show_custom_code(
    folder: Path, cli: CommandLine
) -> None:
    Path("still.py").write_text(METHOD_TEXT)
    Path("mine.py").write_text(HEAD_TEXT)
    made = fsbench.pretrain("toy/normal", set=SHORT, method="py:still.py:Still", progress=False)
    fsbench.evaluate(made.ref, "toy_tiles:2w1s", heads=["py:mine.py:mine"], output="out", **QUICK)
    fakes.declare(Path("out"))
    cli("submit", "out", "--board", "board")
    registry._CUSTOM.clear()
    shown = cli("leaderboard", "show", "--board", "board", "--format", "md").out
    for name, file in (("still", "still.py"), ("mine", "mine.py")):
        assert f"All numbers: custom code {name} {sha256_of_file(Path(file))[:8]}" in shown
    cli("leaderboard", "init", "--board", "official", "--official", "cdfsl")
    cli("submit", "out", "--board", "official", code=5)


def test_a_free_board_marks_a_network_of_ones_own_code_and_does_not_verify_it(
    folder: Path, cli: CommandLine
) -> None:
    """After the submission the file has another content, which reading a board never runs."""
    Path("nets.py").write_text(NETWORK_TEXT)
    digest, model = sha256_of_file(Path("nets.py")), ("-m", "py:nets.py:make?width=6")
    cli("episodic", *model, *TASK, "-o", "out")
    fakes.declare(Path("out"))
    cli("submit", "out", "--board", "board")
    Path("nets.py").write_text("raise SystemExit")
    cli("leaderboard", "check", "--board", "board")
    [table] = cli.json("leaderboard", "show", "--board", "board")
    [entry] = table["entries"]
    weights = next(iter(read_loaded(Path("out")))).result.backbone.weights_hash
    note = f"code sha-256 {digest[:12]}, weights {weights[:12]}"
    assert {"own code, not verifiable", note} <= {*entry["flags"]}
    for shape in ("md", "csv"):
        shown = cli("report", "--board", "board", "--format", shape).out
        assert "own code, not verifiable" in shown
    verify = cli("leaderboard", "verify", entry["name"], *model, "--board", "board", code=5)
    assert f"'{entry['name']}' is own code, not verifiable" in verify.err
    [path] = Path("board").glob(f"*/{ENTRY_FILE}")
    content = json.loads(path.read_text())
    assert content["models"][0].pop("code") == digest
    path.write_text(json.dumps(content))
    unmarked = cli("leaderboard", "check", "--board", "board", code=5).err
    assert "py:nets.py:make?width=6, expected the sha-256 of its code" in unmarked


def test_a_network_in_memory_has_the_mark_without_a_hash(folder: Path, cli: CommandLine) -> None:
    backbone = fsbench.Backbone.from_module(nn.Conv2d(3, 4, 5), name="mine", **STATED)
    fsbench.evaluate(backbone, "toy_tiles:2w1s", output="out", **QUICK)
    fakes.declare(Path("out"))
    cli("submit", "out", "--board", "board")
    cli("leaderboard", "check", "--board", "board")
    [table] = cli.json("leaderboard", "show", "--board", "board")
    start = f"code in memory, weights {backbone.facts.weights_hash[:12]}"
    assert {"own code, not verifiable", start} <= {*table["entries"][0]["flags"]}


def test_files_name_no_code(folder: Path, cli: CommandLine) -> None:
    Path("still.py").write_text(METHOD_TEXT)
    sweep = {"pretrain": [{"recipes": ["toy"], "methods": ["py:still.py:Still"], "seeds": [0]}]}
    Path("sweep.json").write_text(json.dumps(sweep))
    cli("sweep", "sweep.json", "--dry-run", code=2)
    assert "still" not in METHODS.custom()


@pytest.mark.parametrize(("text", "command", "expected"), BROKEN.values(), ids=BROKEN)
def test_an_attribute_that_is_missing_is_named_with_file_and_line(
    text: str,
    command: list[str],
    expected: str,
    folder: Path,
    cli: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder / "broken.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    errors = cli(*command, code=1).err
    assert expected in errors
    assert f"(broken.py, line {len(text.splitlines())})" in errors

"""What commands refuse: before any work, with the exit code and the way out."""

import shlex
from pathlib import Path

import pytest
from support.cli import CommandLine

NET = "-m fsbench/toy_resnet --random-init 0"
SMALL = f"{NET} --input-size 16"
REFUSED = {
    2: [
        ("episodic -m tim/resnet18 -t toy_scan:5w1s", "timm/"),
        ("episodic -m fsbench/toy_resnet -t toy_scan:5w1s", "--random-init"),
        ("episodic -m missing.pth --arch resnet18 -t toy_scan:5w1s", "missing.pth"),
        (f"episodic {NET} -t toy_skan", "did you mean 'toy_scan'"),
        (f"episodic {NET} -t toy_scan:5w1s --shots 1", "--shots"),
        (f"episodic {NET} -t toy_scan --shard 2/2", "i/n"),
        (f"episodic {NET} -t toy_scan:5w1s@ibm-disjoin", "did you mean 'ibm-disjoint'"),
        (f"episodic {NET} -t toy_scan:5w1s --protocol disjoint", "ibm-disjoint"),
        (f"episodic {NET} -t toy_scan --pool mean", "unknown pool 'mean'"),
        (f"episodic {NET} -t toy_scan --layers layer9", "unknown layer of fsbench/toy_resnet"),
        (f"episodic {NET} -t toy_scan --pool cls --layers layer4", "no cls token"),
        (f"episodic {NET} -t toy_scan --features head", "without its classifier"),
        (f"episodic {NET} -t toy_scan --features all", "unknown features 'all'"),
        (f"episodic {NET} -t toy_scan --mean 0.5,0.5", "or three such as"),
        (f"episodic {NET} -t toy_scan --std 0", "above 0"),
        (f"episodic {NET} -t toy_scan --std nan", "or three such as"),
        (f"episodic {NET} -t toy_scan --heads affin", "linear"),
        (f"episodic {NET} -t toy_scan --heads rigde", "did you mean 'ridge'"),
        (f"episodic {NET} -t toy_scan --heads ridge --set ridge.lam", "NAME.SETTING=VALUE"),
        (f"episodic {NET} -t toy_scan --heads ridge --set lam=1", "NAME.SETTING=VALUE"),
        (f"episodic {NET} -t toy_scan --heads ridge --set ridge.lamb=1", "use 'lam'"),
        (f"episodic {NET} -t toy_scan --heads ridge --set ridge.lam=-1", "greater than 0"),
        (
            f"episodic {NET} -t toy_scan --heads ridge --set ridge.transductive=true",
            "transductive is false",
        ),
        (
            f"episodic {NET} -t toy_scan --heads ridge --set ridge.lam=1 --set ridge.lam=2",
            "set twice",
        ),
        (f"episodic {NET} -t toy_scan --heads ridge --set knn.k=1", "add --heads knn"),
        (f"episodic {NET} -t toy_scan --heads linear --set linear.lr=1", "trained as published"),
        (f"episodic {NET} -t toy_scan --heads ridge --set rigde.lam=1", "did you mean 'ridge'"),
        (f"episodic {NET} -t toy_scan --heads ridge --bn-mode train", "--heads affine"),
        (f"episodic {SMALL} -t toy_scan:5w1s/affine --heads affine", "say the same part"),
        (f"episodic {SMALL} -t toy_scan:5w1s --bn-mode train", "without affine tuning"),
        ("episodic -m fsbench/cnn --random-init 0 -t toy_scan:5w1s/affine", "no normalization"),
        (f"episodic {NET} --input-size 8 -t toy_scan:5w1s/affine --bn-mode train", "no batch stat"),
        (f"probe {NET} -t toy_scan --set probe.shedule=cosine", "did you mean 'schedule'"),
        (f"probe {NET} -t toy_scan --set probe.schedule=linear", "'constant' or 'cosine'"),
        (f"probe {NET} -t toy_scan --set probe.k=5", "probe.k is set, and no task uses it"),
        (f"probe {NET} -t toy_scan:knn --set probe.epoch=last", "probe.epoch is set, and no task"),
        (f"probe {NET} -t toy_scan:knn --set probe.k=9999", "the k-NN probe needs at least k = "),
        (f"probe {NET} -t toy_scan:knn/linear", "a probe has no adaptation"),
        ("analyze -m run:no/such --what margins", "no finished run"),
        (f"analyze {NET} --what dormant", "--source"),
        ("pretrain toy/maml --method normal", "only a meta-learner trains on"),
        ("pretrain seal", "choose one of full/seal, paper/seal, pilot/seal"),
        ("pretrain toy/seel", "did you mean 'toy/seal'"),
        ("pretrain toy/seal --set plan.epochs=3", "at least 4 epochs per round"),
        ("pretrain toy/seal --set seed=1 --seed 1", "seed is set twice"),
        ("pretrain toy/seal --device tpu", "device 'tpu' is not available"),
        ("claims reinit_table33", "did you mean 'reinit_table3'"),
        ("ls method", "did you mean 'methods'"),
        ("compare nowhere elsewhere", "--board DIR"),
        ("compare x y --board nowhere", "there is no board at nowhere"),
        ("leaderboard show --board nowhere", "no board at"),
        ("leaderboard show --board nowhere --format html", "html"),
        ("report", "name results, or --board"),
        ("report --board nowhere", "there is no board"),
        ("report nowhere", "does not exist"),
    ],
    3: [
        (f"episodic {NET} -t toy_scan:5w500s", "500"),
        (f"episodic {NET} -t toy_scan:50w1s", "50"),
        (f"episodic {NET} -t toy_scan:5w1s,toy_tiles:5w500s", "toy_tiles"),
        (f"episodic {NET} -t eurosat:5w1s", "fsbench data download eurosat"),
        (f"episodic {NET} -t folder:no/such/folder", "no/such/folder"),
        (f"episodic {NET} -t toy_scan:5w1s@ibm-disjoint", "toy_scan has no groups"),
        (f"probe {NET} -t transfer", "fsbench data download"),
        ("pretrain pilot/normal", "tinyimagenet"),
        ("episodes hash chestx:5w1s@ibm-disjoint", "ChestX-ray14 not found"),
    ],
}
"""Exit code -> commands, and words of their message."""
WRITERS = {"episodic", "probe", "analyze", "demo", "pretrain", "claims"}


@pytest.mark.parametrize(
    ("code", "command", "text"), [(code, *case) for code in REFUSED for case in REFUSED[code]]
)
def test_a_refusal_comes_before_any_work_with_the_way_out(
    code: int,
    command: str,
    text: str,
    tmp_path: Path,
    cli: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)
    shown = cli(*words, *(["-o", "results"] if words[0] in WRITERS else []), code=code).err
    assert text in " ".join(shown.split())
    assert "fix:" in shown
    assert not (tmp_path / "results").exists()

"""What commands refuse: before any work, with the exit code and the way out."""

import shlex
from pathlib import Path

import pytest
from support.cli import CommandLine

NET = "-m fsbench/toy_resnet --random-init 0"
SMALL = f"{NET} --input-size 16"
EVALUATIONS = [
    ("episodic -m tim/resnet18 -t toy_scan:5w1s", 2, "timm/"),
    ("episodic -m fsbench/toy_resnet -t toy_scan:5w1s", 2, "--random-init"),
    ("episodic -m missing.pth --arch resnet18 -t toy_scan:5w1s", 2, "missing.pth"),
    (f"episodic {NET} -t toy_skan", 2, "did you mean 'toy_scan'"),
    (f"episodic {NET} -t toy_scan:5w1s --shots 1", 2, "--shots"),
    (f"episodic {NET} -t toy_scan --shots one", 2, "shots 'one'"),
    (f"episodic {NET} -t toy_scan --shard 2/2", 2, "i/n"),
    (f"episodic {NET} -t toy_scan:5w500s", 3, "500"),
    (f"episodic {NET} -t toy_scan:50w1s", 3, "50"),
    (f"episodic {NET} -t toy_scan:5w1s,toy_tiles:5w500s", 3, "toy_tiles"),
    (f"episodic {NET} -t eurosat:5w1s", 3, "fsbench data download eurosat"),
    (f"episodic {NET} -t folder:no/such/folder", 3, "no/such/folder"),
    (f"episodic {NET} -t toy_scan:5w1s@ibm-disjoint", 3, "toy_scan has no groups"),
    (f"episodic {NET} -t toy_scan:5w1s@ibm-disjoin", 2, "did you mean 'ibm-disjoint'"),
    (f"episodic {NET} -t toy_scan:5w1s --protocol disjoint", 2, "ibm-disjoint"),
    # features and images
    (f"episodic {NET} -t toy_scan --input-size big", 2, "auto or native"),
    (f"episodic {NET} -t toy_scan --pool mean", 2, "unknown pool 'mean'"),
    (f"episodic {NET} -t toy_scan --layers layer9", 2, "unknown layer of fsbench/toy_resnet"),
    (f"episodic {NET} -t toy_scan --pool cls --layers layer4", 2, "no cls token"),
    (f"episodic {NET} -t toy_scan --features head", 2, "without its classifier"),
    (f"episodic {NET} -t toy_scan --features all", 2, "unknown features 'all'"),
    (f"episodic {NET} -t toy_scan --mean 0.5,0.5", 2, "or three such as"),
    (f"episodic {NET} -t toy_scan --std 0", 2, "above 0"),
    (f"episodic {NET} -t toy_scan --std nan", 2, "or three such as"),
    (f"episodic {NET} -t toy_scan --interpolation cubic", 2, "did you mean 'bicubic'"),
    (f"episodic {NET} -t toy_scan --crop 1.15", 2, "less than or equal to 1"),
    # heads
    (f"episodic {NET} -t toy_scan --heads affin", 2, "linear"),
    (f"episodic {NET} -t toy_scan --heads rigde", 2, "did you mean 'ridge'"),
    (f"episodic {NET} -t toy_scan --heads ridge --set ridge.lam", 2, "HEAD.SETTING=VALUE"),
    (f"episodic {NET} -t toy_scan --heads ridge --set lam=1", 2, "HEAD.SETTING=VALUE"),
    (f"episodic {NET} -t toy_scan --heads ridge --set ridge.lamb=1", 2, "use 'lam'"),
    (f"episodic {NET} -t toy_scan --heads ridge --set ridge.lam=-1", 2, "greater than 0"),
    (
        f"episodic {NET} -t toy_scan --heads ridge --set ridge.transductive=true",
        2,
        "transductive is false",
    ),
    (
        f"episodic {NET} -t toy_scan --heads ridge --set ridge.lam=1 --set ridge.lam=2",
        2,
        "set twice",
    ),
    (f"episodic {NET} -t toy_scan --heads ridge --set knn.k=1", 2, "add --heads knn"),
    (f"episodic {NET} -t toy_scan --heads linear --set linear.lr=1", 2, "trained as published"),
    (f"episodic {NET} -t toy_scan --heads ridge --set rigde.lam=1", 2, "did you mean 'ridge'"),
    (f"episodic {NET} -t toy_scan --heads ridge --bn-mode train", 2, "--heads affine"),
    (f"episodic {SMALL} -t toy_scan:5w1s/affine --heads affine", 2, "say the same part"),
    (f"episodic {SMALL} -t toy_scan:5w1s/affine --bn-mode trian", 2, "did you mean 'train'"),
    (f"episodic {SMALL} -t toy_scan:5w1s --bn-mode train", 2, "without affine tuning"),
    (
        "episodic -m fsbench/cnn --random-init 0 -t toy_scan:5w1s/affine",
        2,
        "no normalization",
    ),
    (
        f"episodic {NET} --input-size 8 -t toy_scan:5w1s/affine --bn-mode train",
        2,
        "no batch stat",
    ),
    # probes
    (f"probe {NET} -t toy_scan --set probe.view=3", 2, "did you mean 'views'"),
    (f"probe {NET} -t toy_scan --set probe.views=many", 2, "views"),
    (f"probe {NET} -t toy_scan --set probe.views=0", 2, "views: "),
    (f"probe {NET} -t toy_scan --set probe.schedule=linear", 2, "'constant' or 'cosine'"),
    (f"probe {NET} -t toy_scan --set probe.k=5", 2, "probe.k is set, and no task uses it"),
    (
        f"probe {NET} -t toy_scan:knn --set probe.views=5",
        2,
        "probe.views is set, and no task",
    ),
    (f"probe {NET} -t toy_scan:knn --set probe.k=9999", 2, "the k-NN probe needs at least k = "),
    (f"probe {NET} -t toy_scan:knn/linear", 2, "a probe has no adaptation"),
    (f"probe {NET} -t transfer", 3, "fsbench data download"),
    # others
    ("analyze -m run:no/such --what margins", 2, "no finished run"),
    ("analyze -m tim/resnet18 --what margins", 2, "timm/"),
    (f"analyze {NET} --what dormant", 2, "--source"),
    ("demo --methods swr,seel", 2, "did you mean 'seal'"),
    ("pretrain toy/maml --method normal", 2, "only a meta-learner trains on"),
    ("claims reinit_table33", 2, "did you mean 'reinit_table3'"),
    ("claims reinit_table3 --all", 2, "use one of them"),
    ("claims --full", 2, "name one claim"),
]
OTHERS = [
    ("ls method", 2, "did you mean 'methods'"),
    ("protocols diff linear@ibm linear@imb", 2, "did you mean 'linear@ibm'"),
    ("protocols diff linear@ibm linear", 2, "unknown protocol 'linear'"),
    ("protocols diff linear@ibm linear@ibm:4px", 2, "greater than or equal to 8"),
    ("protocols diff linear@ibm linear@ibm:64", 2, "unknown protocol 'linear@ibm:64'"),
    ("episodes hash chestx:5w1s@ibm-disjoint", 3, "ChestX-ray14 not found"),
    ("compare nowhere elsewhere", 2, "--board DIR"),
    ("compare x y --board nowhere", 2, "there is no board at nowhere"),
    ("report", 2, "name results, or --board"),
    ("report --board nowhere", 2, "there is no board"),
    ("report nowhere", 2, "does not exist"),
]


@pytest.mark.parametrize(("words", "code", "text"), [*EVALUATIONS, *OTHERS])
def test_a_refusal_comes_before_any_work_with_the_way_out(
    words: str,
    code: int,
    text: str,
    tmp_path: Path,
    cli: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    output = ["-o", "results"] if (words, code, text) in EVALUATIONS else []
    shown = cli(*shlex.split(words), *output, code=code).err
    assert text in " ".join(shown.split())
    assert "fix:" in shown
    assert not (tmp_path / "results").exists()

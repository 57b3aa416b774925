"""Badges: signed ones count, all others are claims, whatever they say; made with real SSH keys."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support import fakes
from support.badges import add_badge, allow_signer, make_badge, make_key, needs_ssh_keygen
from support.cli import call
from support.fakes import DECLARATION
from support.forged import edit, flipped, forge

from fsbench.api.leaderboard import leaderboard
from fsbench.api.submit import submit
from fsbench.core.errors import FsbenchError, UsageError, ValidationFailed
from fsbench.core.io import write_record
from leaderboard import signatures
from leaderboard.freeze import freeze_board
from leaderboard.official import BOARD_FILE, find_official_board
from leaderboard.record import BoardFile
from leaderboard.render import FORMATS
from leaderboard.render.frame import make_frames
from leaderboard.render.notes import SELF_MARK, SELF_NOTE, TRUST_NOTE
from leaderboard.repository import init_board
from leaderboard.rules.board import inspect_board
from leaderboard.site.page import build_site
from leaderboard.store import Board
from leaderboard.tables import rank_board
from leaderboard.trust import Verification

ONE, FIVE = (f"toy_tiles:5w{k}s/linear@ibm 32px n_query=5" for k in (1, 5))

GAIN = "a forged gain of 4.0 is found with 95 %"
VERIFIED = f"verified 2 of 2 results (30 episodes each, {GAIN}), 2026-01-02"
"""By hand: (1 - .05 ^ (1 / 30)) (1 - .58) = .040."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An entry of two few-shot results, the results that it was made of, and two keys."""
    root = tmp_path_factory.mktemp("made")
    for shots in (1, 5):
        fakes.write(root / "results", shots=shots, data=fakes.official("toy_tiles"))
    submit(root / "results", root / "board", DECLARATION)
    if shutil.which("ssh-keygen"):
        for name in ("trusted", "stranger"):
            make_key(root, name)
    return root


@pytest.fixture
def board(made: Path, tmp_path: Path) -> Path:
    """A board that trusts one key."""
    folder = Path(shutil.copytree(made / "board", tmp_path / "board"))
    if shutil.which("ssh-keygen"):
        allow_signer(folder, made / "trusted")
    return folder


def read(board: Path) -> Verification:
    return Board.open(board).entry("entry").verification


def everything(board: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """All that a reader can see of a board: tables, page, reports, JSON, data frames."""
    shapes = []
    for shape in ((), ("--format", "md"), ("--format", "csv"), ("--json",)):
        assert call("leaderboard", "show", "--board", str(board), *shape) == 0
        shapes.append(capsys.readouterr().out)
    reports = [FORMATS.load(name)(make_frames(rank_board(board))) for name in FORMATS.names()]
    page = build_site(board, board.parent / "site").read_text(encoding="utf8")
    data = page.partition('<script type="application/json" id="data">')[2].partition("</script>")[0]
    frame = leaderboard(board).to_frame().to_csv()
    return "\n".join([*shapes, *reports, data, frame])


@needs_ssh_keygen
def test_a_signed_badge_is_verified_with_its_coverage(board: Path, made: Path) -> None:
    add_badge(board, "entry", key=made / "trusted")
    verification = read(board)
    assert (verification.verdict, verification.claims) == ("verified", 0)
    assert str(verification) == VERIFIED
    assert inspect_board(board).problems == []


@needs_ssh_keygen
def test_anybody_can_check_the_signature_without_fsbench(
    board: Path, made: Path, tmp_path: Path
) -> None:
    badge = add_badge(board, "entry", key=made / "trusted")
    signers = tmp_path / "signers"
    signers.write_text(f"me {(made / 'trusted.pub').read_text()}")
    done = subprocess.run(
        f"ssh-keygen -Y verify -f {signers} -I me -n fsbench-badge -s {badge}.sig".split(),
        input=badge.read_bytes(),
        check=False,
    )
    assert done.returncode == 0


@needs_ssh_keygen
def test_one_verified_result_does_not_hide_the_others(
    board: Path, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_badge(board, "entry", make_badge(board, "entry", columns=[FIVE]), made / "trusted")
    verification = read(board)
    assert str(verification) == VERIFIED.replace("verified 2", "verified 1")
    assert {column: v for (_, column), v in verification.verdicts.items()} == {FIVE: "verified"}
    (shown,) = leaderboard(board).to_json()
    (entry,) = shown["entries"]
    columns = [column["name"] for column in shown["columns"]]
    assert entry["column_flags"]["self-reported"] == [columns.index(ONE)]
    shown = leaderboard(board).tables()[0]
    assert shown.rows[0][2].endswith("ᵃ")
    assert shown.rows[0][3].endswith("ᵃ"), "one of the columns has no signed badge"
    assert "a: self-reported (no signed badge)." in shown.note
    (row,) = shown.complete.rows
    assert [text.endswith("ᵃ") for text in row[2:5]] == [True, True, False]
    assert '"self-reported":[0]' in everything(board, capsys)


FORGERIES = {
    "unsigned": lambda board, made: add_badge(board, "entry"),
    "foreign": lambda board, made: add_badge(board, "entry", key=made / "stranger"),
    "other namespace": lambda board, made: signatures.sign_file(
        add_badge(board, "entry"), made / "trusted", "file"
    ),
    "signature of another badge": lambda board, made: swap_signatures(board, made),
    "no signature": lambda board, made: signatures.signature_path(
        add_badge(board, "entry")
    ).write_text("-----BEGIN SSH SIGNATURE-----\n"),
    "huge signature": lambda board, made: signatures.signature_path(
        add_badge(board, "entry")
    ).write_bytes(b"x" * 10**6),
    "of the future": lambda board, made: add_badge(
        board, "entry", make_badge(board, "entry", date="2031-12-31T00:00:00+00:00")
    ),
    "failed": lambda board, made: add_badge(
        board, "entry", make_badge(board, "entry", flipped=3), made / "stranger"
    ),
}


def swap_signatures(board: Path, made: Path) -> None:
    signed = add_badge(board, "entry", make_badge(board, "entry", seed=1), made / "trusted")
    other = add_badge(board, "entry", make_badge(board, "entry", seed=2))
    signatures.signature_path(signed).rename(signatures.signature_path(other))


@needs_ssh_keygen
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_badge_is_an_unsigned_claim_everywhere(
    name: str, board: Path, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FORGERIES[name](board, made)
    verification = read(board)
    assert (str(verification), dict(verification.verdicts)) == ("unsigned claim", {})
    shown = everything(board, capsys)
    assert "unsigned claim" in shown
    assert SELF_NOTE in shown
    for word in ("verified", "tolerant", "2031", "failed"):
        assert word not in shown.replace("not verified", ""), shown


@needs_ssh_keygen
def test_a_failed_badge_of_a_trusted_key_stays_until_one_passes(board: Path, made: Path) -> None:
    key = made / "trusted"
    add_badge(board, "entry", make_badge(board, "entry", flipped=3), key)
    assert str(read(board)).startswith("failed 1, verified 1 of 2 results")
    (row,) = leaderboard(board).tables()[0].rows
    assert "failed 1" in row[-1]
    unsigned = make_badge(board, "entry", date="2026-02-01T00:00:00+00:00")
    add_badge(board, "entry", unsigned)
    assert read(board).verdict == "failed"
    other = make_badge(board, "entry", columns=[FIVE], date="2026-02-02T00:00:00+00:00")
    add_badge(board, "entry", other, key)
    assert read(board).verdict == "failed", "of another column"
    later = make_badge(board, "entry", date="2026-02-03T00:00:00+00:00")
    add_badge(board, "entry", later, key)
    assert str(read(board)).startswith("verified 2 of 2 results")


@needs_ssh_keygen
def test_another_environment_is_shown_as_tolerant(board: Path, made: Path) -> None:
    badge = make_badge(board, "entry", torch="1.0")
    add_badge(board, "entry", badge, made / "trusted")
    assert str(read(board)) == VERIFIED.replace("verified", "tolerant")
    assert inspect_board(board).problems == []


@needs_ssh_keygen
def test_a_badge_is_of_one_state_of_an_entry(board: Path, made: Path) -> None:
    """Whatever is shown of it: also another statement is another state."""
    add_badge(board, "entry", key=made / "trusted")
    assert read(board).verdict == "verified"
    stated = DECLARATION.model_copy(update={"statement": "Please look again."})
    submit(made / "results", board, stated, replace=True)
    assert read(board) == Verification(2)
    assert len(list((board / "entry" / "badges").glob("*.json"))) == 1
    assert inspect_board(board).problems == []


@needs_ssh_keygen
@pytest.mark.parametrize("settled", [True, False])
def test_a_failed_badge_is_not_washed_off(settled: bool, board: Path, made: Path) -> None:
    """Not by another state of the entry, nor by other outcomes, nor where the badge is deleted."""
    add_badge(board, "entry", make_badge(board, "entry", flipped=3), made / "trusted")
    if settled:
        with Board.open(board).lock():
            Board.open(board).record_changes()
        shutil.rmtree(board / "entry" / "badges")
        stated = DECLARATION.model_copy(update={"statement": "Please look again."})
        submit(made / "results", board, stated, replace=True)
        assert str(read(board)).startswith("failed 1 of 2 results")
    forge(board / "entry", "5w1s", flipped(1))
    assert str(read(board)).startswith("failed 1 of 2 results")
    assert inspect_board(board).problems == []


@needs_ssh_keygen
def test_a_badge_changed_after_it_was_signed_is_an_unsigned_claim(board: Path, made: Path) -> None:
    path = add_badge(board, "entry", make_badge(board, "entry", flipped=3), made / "trusted")
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 7'))
    assert str(read(board)) == "unsigned claim"


@needs_ssh_keygen
def test_signers_are_not_frozen_and_survive_freezing(board: Path, made: Path) -> None:
    public = (made / "trusted.pub").read_text().strip()
    frozen = freeze_board(board)
    assert frozen.signers == (public,)
    assert Board.open(board).file == frozen
    official = init_board(board.parent / "official", "cdfsl")
    assert "signers" not in (board.parent / "official" / BOARD_FILE).read_text()
    signed = official.model_copy(update={"signers": (public,)})
    write_record(board.parent / "official" / BOARD_FILE, signed)
    opened = Board.open(board.parent / "official").file
    assert opened.signers == (public,)
    assert opened.frozen == find_official_board("cdfsl").frozen


@pytest.mark.parametrize(
    "key",
    [
        "",
        "ssh-ed25519",
        "ssh-ed25519 AAAA\nevil * ssh-rsa AAAA",
        'a namespaces="x" ssh-rsa A',
        "* A",
    ],
)
def test_a_signer_is_one_public_key(key: str, tmp_path: Path) -> None:
    (tmp_path / BOARD_FILE).write_text(
        json.dumps(BoardFile(name="b").model_dump(mode="json") | {"signers": [key]})
    )
    with pytest.raises(ValidationFailed, match="signers"):
        Board.open(tmp_path)


@needs_ssh_keygen
def test_what_cannot_sign_is_named(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "badge.json"
    file.write_text("{}")
    no_key = tmp_path / "no_key"
    no_key.write_text("hello")
    with pytest.raises(UsageError, match="no_key cannot sign"):
        signatures.sign_file(file, no_key, "fsbench-badge")
    assert not signatures.signature_path(file).exists()
    with pytest.raises(UsageError, match="there is no key"):
        signatures.require_key(tmp_path / "nowhere")


@needs_ssh_keygen
def test_without_ssh_keygen_a_signed_board_says_what_to_install(
    board: Path, made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_badge(board, "entry", key=made / "trusted")
    monkeypatch.setenv("PATH", "")
    assert call("leaderboard", "show", "--board", str(board)) == 1
    shown = capsys.readouterr().err
    assert "need the program ssh-keygen, which is missing" in shown
    assert "apt install openssh-client" in shown


def test_without_ssh_keygen_nothing_is_computed_that_could_not_be_signed(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    words = ["verify", "entry", "-m", "fsbench/toy_resnet", "--random-init", "0"]
    assert call("leaderboard", *words, "--board", str(made / "board"), "--sign-with", "key") == 1
    assert "apt install openssh-client" in capsys.readouterr().err
    with pytest.raises(FsbenchError, match="ssh-keygen"):
        signatures.require_ssh_keygen()


def test_the_page_says_what_a_fabricated_entry_can_do(made: Path, tmp_path: Path) -> None:
    """Its records and hashes fit, and it leads the board: nothing but the text warns."""
    board = Path(shutil.copytree(made / "board", tmp_path / "board"))
    shutil.copytree(board / "entry", board / "fabricated")
    edit(board / "fabricated", lambda content: content["declaration"].update(name="fabricated"))
    for cell in ("5w1s", "5w5s"):
        forge(board / "fabricated", cell, flipped(25))
    assert inspect_board(board).problems == []
    page = build_site(board, tmp_path / "site").read_text(encoding="utf8")
    for sentence in (SELF_NOTE, TRUST_NOTE):
        assert sentence in page
    assert page.count(SELF_MARK) > 3

"""Badges: signed ones count, all others are claims, whatever they say; made with real SSH keys."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support import fakes
from support.badges import add_badge, allow_signer, make_key, needs_ssh_keygen
from support.cli import CommandLine
from support.fakes import DECLARATION, add_entry
from support.forged import flipped, forge, put

from fsbench.api.leaderboard import leaderboard
from fsbench.api.submit import submit
from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.io import write_record
from leaderboard import signatures
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

pytestmark = needs_ssh_keygen
ONE, FIVE = (f"toy_tiles:5w{k}s/linear@ibm 32px n_query=5" for k in (1, 5))
GAIN = "a forged gain of 4.0 is found with 95 %"
VERIFIED = f"verified 2 of 2 results (30 episodes each, {GAIN}), 2026-01-02"
"""By hand: (1 - .05 ^ (1 / 30)) (1 - .58) = .040."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board with an entry of two few-shot results, these results, and two keys."""
    root = tmp_path_factory.mktemp("made")
    add_entry(root / "board", shots=(1, 5), data=fakes.official("toy_tiles"))
    for name in ("trusted", "stranger"):
        make_key(root, name)
    allow_signer(root / "board", root / "trusted")
    return root


@pytest.fixture
def board(made: Path, tmp_path: Path) -> Path:
    """A board that trusts one key."""
    return Path(shutil.copytree(made / "board", tmp_path / "board"))


def read(board: Path) -> Verification:
    return Board.open(board).entry("entry").verification


def show_everything(board: Path, cli: CommandLine) -> str:
    """Return all that a reader can see of a board: tables, page, reports, JSON, data frames."""
    shapes = [("--format", "md"), ("--format", "csv"), ("--json",), ()]
    shown = [cli("leaderboard", "show", "--board", board, *shape).out for shape in shapes]
    reports = [FORMATS.load(name)(make_frames(rank_board(board))) for name in FORMATS.names()]
    page = build_site(board, board.parent / "site").read_text(encoding="utf8")
    data = page.partition('<script type="application/json" id="data">')[2].partition("</script>")[0]
    return "\n".join([*shown, *reports, data, leaderboard(board).to_frame().to_csv()])


@pytest.mark.parametrize(
    ("environment", "verdict"), [({}, "verified"), ({"torch": "1"}, "tolerant")]
)
def test_a_signed_badge_counts_with_its_coverage(
    environment: dict[str, str], verdict: str, board: Path, made: Path, tmp_path: Path
) -> None:
    path = add_badge(board, key=made / "trusted", **environment)
    verification = read(board)
    assert (verification.verdict, verification.claims) == (verdict, 0)
    assert str(verification) == VERIFIED.replace("verified", verdict)
    assert inspect_board(board).problems == []
    signers = tmp_path / "signers"
    signers.write_text(f"me {(made / 'trusted.pub').read_text()}")
    command = f"ssh-keygen -Y verify -f {signers} -I me -n fsbench-badge -s {path}.sig".split()
    subprocess.run(command, input=path.read_bytes(), check=True)  # as anybody can, without fsbench


def test_one_verified_result_does_not_hide_the_others(
    board: Path, made: Path, cli: CommandLine
) -> None:
    add_badge(board, key=made / "trusted", columns=[FIVE])
    verification = read(board)
    assert str(verification) == VERIFIED.replace("verified 2", "verified 1")
    assert {column: v for (_, column), v in verification.verdicts.items()} == {FIVE: "verified"}
    (table,) = leaderboard(board).to_json()
    columns = [column["name"] for column in table["columns"]]
    assert table["entries"][0]["column_flags"]["self-reported"] == [columns.index(ONE)]
    shown = leaderboard(board).tables()[0]
    assert [text.endswith("ᵃ") for text in shown.rows[0][2:4]] == [True, True]
    assert "a: self-reported (no signed badge)." in shown.note
    (row,) = shown.complete.rows
    assert [text.endswith("ᵃ") for text in row[2:5]] == [True, True, False]
    assert '"self-reported":[0]' in show_everything(board, cli)


def swap_signatures(board: Path, made: Path) -> None:
    signed = add_badge(board, key=made / "trusted", seed=1)
    other = add_badge(board, seed=2)
    signatures.signature_path(signed).rename(signatures.signature_path(other))


def edit_signed(board: Path, made: Path) -> None:
    path = add_badge(board, key=made / "trusted", flipped=3)
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 7'))


def sign_by(content: bytes) -> Callable[[Path, Path], object]:
    """Add a badge with this content as its signature."""
    return lambda board, made: signatures.signature_path(add_badge(board)).write_bytes(content)


FORGERIES: dict[str, Callable[[Path, Path], object]] = {
    "unsigned": lambda board, made: add_badge(board),
    "foreign": lambda board, made: add_badge(board, key=made / "stranger"),
    "other namespace": lambda board, made: signatures.sign_file(
        add_badge(board), made / "trusted", signatures.ENTRY_NAMESPACE
    ),
    "signature of another badge": swap_signatures,
    "edited after signing": edit_signed,
    "no signature": sign_by(b"-----BEGIN SSH SIGNATURE-----\n"),
    "huge signature": sign_by(b"x" * 10**6),
    "of the future": lambda board, made: add_badge(board, date="2031-12-31T00:00:00+00:00"),
    "failed": lambda board, made: add_badge(board, key=made / "stranger", flipped=3),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_badge_is_an_unsigned_claim(
    name: str, board: Path, made: Path, cli: CommandLine
) -> None:
    """Nothing that it says is shown."""
    FORGERIES[name](board, made)
    verification = read(board)
    assert (str(verification), dict(verification.verdicts)) == ("unsigned claim", {})
    if name in {"of the future", "failed"}:
        shown = show_everything(board, cli)
        assert "unsigned claim" in shown
        assert SELF_NOTE in shown
        for word in ("verified", "tolerant", "2031", "failed"):
            assert word not in shown.replace("not verified", ""), shown


def test_a_failed_badge_of_a_trusted_key_stays_until_one_passes(board: Path, made: Path) -> None:
    def add(key: Path | None = made / "trusted", **changes: object) -> Verification:
        add_badge(board, key=key, **changes)
        return read(board)

    assert str(add(flipped=3)).startswith("failed 1, verified 1 of 2 results")
    (row,) = leaderboard(board).tables()[0].rows
    assert "failed 1" in row[-1]
    assert add(None, date="2026-02-01T00:00:00+00:00").verdict == "failed", "unsigned"
    other = add(columns=[FIVE], date="2026-02-02T00:00:00+00:00")
    assert other.verdict == "failed", "of another column"
    assert str(add(date="2026-02-03T00:00:00+00:00")).startswith("verified 2 of 2 results")


def submit_again(board: Path, made: Path) -> None:
    """Equal results with another statement: another state of the entry."""
    declared = DECLARATION.model_copy(update={"statement": "Please look again."})
    submit(made / "results-entry", board, declared, replace=True)


def test_a_badge_is_of_one_state_of_an_entry(board: Path, made: Path) -> None:
    add_badge(board, key=made / "trusted")
    assert read(board).verdict == "verified"
    submit_again(board, made)
    assert read(board) == Verification(2)
    assert len(list((board / "entry" / "badges").glob("*.json"))) == 1
    assert inspect_board(board).problems == []


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_failed_badge_is_not_washed_off(is_recorded: bool, board: Path, made: Path) -> None:
    """Not by another state of the entry, nor by other outcomes, nor where the badge is deleted."""
    add_badge(board, key=made / "trusted", flipped=3)
    if is_recorded:
        Board.open(board).record_changes()
        shutil.rmtree(board / "entry" / "badges")
        submit_again(board, made)
        assert str(read(board)).startswith("failed 1 of 2 results")
    forge(board / "entry", "5w1s", flipped(1))
    assert str(read(board)).startswith("failed 1 of 2 results")
    assert inspect_board(board).problems == []


def test_signers_are_not_frozen(board: Path, made: Path) -> None:
    signers = ((made / "trusted.pub").read_text().strip(),)
    folder = board.parent / "official"
    official = init_board(folder, "cdfsl")
    assert "signers" not in (folder / BOARD_FILE).read_text()
    write_record(folder / BOARD_FILE, official.model_copy(update={"signers": signers}))
    opened = Board.open(folder).file
    assert opened.signers == signers
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
    content = BoardFile(name="b").model_dump(mode="json") | {"signers": [key]}
    (tmp_path / BOARD_FILE).write_text(json.dumps(content))
    with pytest.raises(ValidationFailed, match="signers"):
        Board.open(tmp_path)


def test_what_cannot_sign_is_named(tmp_path: Path) -> None:
    file, no_key = tmp_path / "badge.json", tmp_path / "no_key"
    file.write_text("{}")
    no_key.write_text("hello")
    with pytest.raises(UsageError, match="no_key cannot sign"):
        signatures.sign_file(file, no_key, "fsbench-badge")
    assert not signatures.signature_path(file).exists()
    with pytest.raises(UsageError, match="there is no key"):
        signatures.require_key(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"there is no public key .*no_key.pub"):
        signatures.read_public_key(no_key)


def test_without_ssh_keygen_the_message_says_what_to_install(
    board: Path, made: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    """A signed board is not shown, and nothing is computed that could not be signed."""
    add_badge(board, key=made / "trusted")
    monkeypatch.setenv("PATH", "")
    verify = "verify entry -m fsbench/toy_resnet --random-init 0 --sign-with key"
    for command in ("show", verify):
        shown = cli("leaderboard", *command.split(), "--board", board, code=1).err
        assert "need the program ssh-keygen, which is missing" in shown
        assert "apt install openssh-client" in shown


def test_the_page_says_what_a_fabricated_entry_can_do(board: Path, tmp_path: Path) -> None:
    """Its records and hashes fit, and it leads the board: nothing but the text warns."""
    shutil.copytree(board / "entry", board / "fabricated")
    put("declaration.name", "fabricated")(board / "fabricated")
    for column in ("5w1s", "5w5s"):
        forge(board / "fabricated", column, flipped(25))
    assert inspect_board(board).problems == []
    page = build_site(board, tmp_path / "site").read_text(encoding="utf8")
    for sentence in (SELF_NOTE, TRUST_NOTE):
        assert sentence in page
    assert page.count(SELF_MARK) > 3

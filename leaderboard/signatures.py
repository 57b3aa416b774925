"""Signatures of files by SSH keys, made and checked by OpenSSH's `ssh-keygen -Y`.

    ssh-keygen -Y sign -f KEY -n NAMESPACE FILE        writes FILE.sig

A namespace says what a signature is for, so that one made for something else is not accepted.
Format: PROTOCOL.sshsig of OpenSSH, https://github.com/openssh/openssh-portable.
"""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from pydantic import StringConstraints

from fsbench.core.errors import FsbenchError, UsageError
from fsbench.core.io import MAX_JSON, read_bytes, write_atomic

PublicKey = Annotated[
    str,
    StringConstraints(
        max_length=2000,
        pattern=r"^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|"
        r"sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]+={0,2}( [^\x00-\x1f\x7f]*)?$",
    ),
]
"""A line of a .pub file: type, key and an optional comment."""
BADGE_NAMESPACE, ENTRY_NAMESPACE = "fsbench-badge", "fsbench-entry"
PRINCIPAL = "signer"
"""All allowed keys share one name, so that no text of a board becomes a pattern of names."""
MAX_SIGNATURE = 16 * 2**10
"""Bytes; a signature by RSA with 16384 bits takes 6 kB."""
INSTALL = "install OpenSSH 8.2 or newer, e.g. apt install openssh-client, brew install openssh"


def require_ssh_keygen() -> str:
    """Return the path of ssh-keygen. Raises FsbenchError if it is not installed."""
    program = shutil.which("ssh-keygen")
    if program is None:
        raise FsbenchError("signatures need the program ssh-keygen, which is missing", fix=INSTALL)
    return program


def require_key(key: Path) -> None:
    """Raise UsageError if there is no such key, FsbenchError without ssh-keygen."""
    require_ssh_keygen()
    if not key.is_file():
        raise UsageError(f"there is no key {key}", fix="make one: ssh-keygen -t ed25519 -f KEY")


def read_public_key(key: Path) -> str:
    """Return type and key of the .pub file of an SSH key. Raises UsageError if there is none."""
    require_key(key)
    file = key if key.suffix == ".pub" else key.with_name(f"{key.name}.pub")
    try:
        return " ".join(file.read_text(encoding="utf8").split()[:2])
    except (OSError, ValueError) as error:
        fix = f"make it: ssh-keygen -y -f {key} > {file}"
        raise UsageError(f"there is no public key {file}", fix=fix) from error


def signature_path(file: Path) -> Path:
    """Return where the signature of a file lies, as ssh-keygen names it."""
    return file.with_name(f"{file.name}.sig")


def sign_file(file: Path, key: Path, namespace: str) -> Path:
    """Write the signature of a file beside it; return its path.

    key: a private key, or a public one whose private key an agent has; ssh-keygen asks for its
    passphrase. Raises UsageError for a key that cannot sign, FsbenchError without ssh-keygen.
    """
    done = run_ssh_keygen(file.read_bytes(), "sign", "-f", str(key), "-n", namespace)
    if done.returncode:
        reason = " ".join(done.stderr.decode(errors="replace").split())
        raise UsageError(f"{key} cannot sign: {reason}", fix="give a private SSH key")
    write_atomic(signature_path(file), done.stdout)
    return signature_path(file)


def is_signed(file: Path, keys: Iterable[str], namespace: str) -> bool:
    """Return whether the signature beside a file was made by one of these keys for `namespace`.

    Raises FsbenchError if there are a signature and keys, but no ssh-keygen that can check it.
    """
    allowed = [" ".join(key.split(" ")[:2]) for key in keys]
    try:
        signature = read_bytes(signature_path(file), MAX_SIGNATURE) if allowed else None
    except OSError:
        signature = None
    if signature is None:
        return False
    with TemporaryDirectory(prefix="fsbench-") as folder:
        signers, copy = Path(folder) / "allowed_signers", Path(folder) / "signature"
        signers.write_text("".join(f"{PRINCIPAL} {key}\n" for key in allowed))
        copy.write_bytes(signature)
        options = ["-f", str(signers), "-s", str(copy), "-I", PRINCIPAL, "-n", namespace]
        done = run_ssh_keygen(read_bytes(file, MAX_JSON), "verify", *options)
    if b"unknown option" in done.stderr or b"illegal option" in done.stderr:  # before 8.2: no -Y
        raise FsbenchError("ssh-keygen is too old to check signatures", fix=INSTALL)
    return done.returncode == 0


def run_ssh_keygen(content: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command on signatures of a content. Raises FsbenchError without ssh-keygen."""
    return subprocess.run(
        [require_ssh_keygen(), "-Y", *arguments], input=content, capture_output=True, check=False
    )

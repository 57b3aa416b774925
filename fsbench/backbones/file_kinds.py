"""Kinds of files by their first bytes: how weights are stored, and what a file without them is."""

import re
import zipfile
from pathlib import Path

from fsbench.backbones.pickles import MAGIC, MAGIC_NUMBER
from fsbench.core.errors import CheckpointError

SUFFIXES = (".safetensors", ".pth", ".pt", ".ckpt", ".bin", ".tar")
HEAD = 1024
"""Bytes that are looked at."""

FETCH = "download the file itself; a browser shows what its address answers"
TORCH = "pass its weights as torch or safetensors saved them; their authors or the hub have them"
RESAVE = "load it in a program that you trust, and save its tensors with torch.save"
UNPACK = "unpack it, and pass the file of weights inside"
ANNEX = "run `git annex get` in its repository"

KINDS = (
    (rb"version https://(git-lfs|hawser)", "a Git LFS pointer", "run `git lfs pull` beside it"),
    (rb"[./]*(git/)?annex/objects/", "a git-annex pointer", ANNEX),
    (rb"(?i)(\xef\xbb\xbf)?\s*<(!doctype html|html|head|body|!--)", "a web page (HTML)", FETCH),
    (rb"(\xef\xbb\xbf)?\s*<\?xml", "an XML page, such as servers send with an error", FETCH),
    (rb"\s*[\[{]\s*[\[\]{}\"\d-]", "a JSON file", "pass the file of weights that it describes"),
    (rb"\x08\x01\x12|.{4}TFL3|model_checkpoint_path:", "a model of TensorFlow", TORCH),
    (rb"\x08[\x02-\x1f][\x12\x1a\x22\x28\x32\x3a\x42]", "an ONNX graph", TORCH),
    (rb"\x89HDF\r\n\x1a\n", "an HDF5 file, such as Keras and MATLAB write", TORCH),
    (rb"\x93NUMPY", "a NumPy array (.npy)", TORCH),
    (rb"\x80[\x00-\x05]|\(dp", "a pickle that torch.save did not write", RESAVE),
    (rb"[\x81-\x8f\xde\xdf].{0,4}?[\xa1-\xbf\xd9]\w", "a msgpack file, such as Flax writes", TORCH),
    (rb"GGUF", "a GGUF file", TORCH),
    (rb"\x1f\x8b|BZh|\xfd7zXZ|\x28\xb5\x2f\xfd|7z\xbc\xaf|Rar!", "a compressed file", UNPACK),
    (rb".{257}ustar", "a tar archive", UNPACK),
    (rb"%PDF-|\x89PNG|\xff\xd8\xff|GIF8", "a document or an image", FETCH),
    (rb"[\t\n\r\x20-\x7e]+$", "a text file", FETCH),
)
"""Pattern of the first bytes, what the file is, and what to do."""
NAMED = (
    (r".*\.(index|meta|data-\d{5}-of-\d{5})", "a checkpoint of TensorFlow", TORCH),
    (r".*\.distcp", "one part of a checkpoint of torch.distributed", "pass its folder"),
    (r".*", "no checkpoint: its first bytes are of no known format", FETCH),
)
"""The same by the name of a file whose bytes say nothing."""
ZIPS = (
    (r".+\.npy", "a set of NumPy arrays (.npz)", f"timm reads those of JAX; else {RESAVE}"),
    (r"model\.weights\.h5", "a model of Keras", TORCH),
    (r".+/(model\.json|archive_format)", "a program of torch.jit 1.0 or torch.export", RESAVE),
    (r".*", "a zip archive that torch did not write", UNPACK),
)
"""The same by the name of a member of a zip archive."""


def find_format(path: Path) -> str:
    """Return how the weights of a file are stored: safetensors, zip, or legacy (torch < 1.6).

    Raises CheckpointError for files of other kinds, naming the kind.
    """
    with path.open("rb") as file:
        head = file.read(HEAD)
    members: list[str] = []
    if head.startswith(b"PK\x03\x04") and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
    if any(name.split("/")[1:] == ["data.pkl"] for name in members):
        return "zip"
    if head[8:9] == b"{" and not any(head[5:8]):
        return "safetensors"
    if MAGIC in head[:32] or head.startswith(b"L%dL" % MAGIC_NUMBER):
        return "legacy"
    if not head or (head.startswith(b"PK") and not members):
        raise CheckpointError(f"{path} is cut: its end is missing", fix="fetch or save it again")
    kinds = [(kind, fix) for pattern, kind, fix in KINDS if re.match(pattern, head, re.DOTALL)]
    kinds += [
        (kind, fix)
        for patterns, names in ((ZIPS, members), (NAMED, [path.name]))
        for pattern, kind, fix in patterns
        if any(re.fullmatch(pattern, name) for name in names)
    ]
    raise CheckpointError(f"{path} is {kinds[0][0]}, not a file of weights", fix=kinds[0][1])

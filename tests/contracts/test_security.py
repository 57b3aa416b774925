"""What the packages never do: run pickles, shells or text, parse XML, serve, unpack blindly.

`ruff check` holds every file to it; pickles have rules of their own.
"""

import io
import json
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import pytest
from support.cases import GOLDEN

from fsbench.backbones import pickles

ROOT = Path(__file__).resolve().parents[2]
REFUSED = (GOLDEN / "insecure.txt").read_text(encoding="utf8")


def test_the_linter_refuses_what_runs_foreign_code() -> None:
    command = [sys.executable, "-m", "ruff", "check", "--output-format", "json"]
    command += ["--stdin-filename", "fsbench/core/errors.py", "-"]
    done = subprocess.run(command, input=REFUSED, cwd=ROOT, capture_output=True, text=True)
    problems = [
        p
        for p in json.loads(done.stdout)
        if p["code"].startswith(("S1", "S2", "S3", "S5", "S6", "S7", "TID251"))
    ]
    reported = {problem["location"]["row"] for problem in problems}
    lines = REFUSED.splitlines()
    missed = [line for row, line in enumerate(lines, start=1) if line and row not in reported]
    assert missed == [lines[0], "from pickle import loads"], done.stderr


def test_no_array_of_objects_is_read() -> None:
    for package in ("fsbench", "pretrain", "protocols", "leaderboard"):
        for path in (ROOT / package).rglob("*.py"):
            assert "allow_pickle=True" not in path.read_text(encoding="utf8"), path


NAMES = [
    *(("os", "system"), ("posix", "system"), ("builtins", "eval"), ("builtins", "getattr")),
    *(("torch", "load"), ("torch.hub", "load"), ("torch._utils", "_rebuild_tensor_v2")),
    *(("torch.storage", "_load_from_bytes"), ("torch.nn.parameter", "Parameter")),
    *(("collections", "OrderedDict.fromkeys"), ("collections.OrderedDict", "x"), ("", "os.system")),
    *(("subprocess", "Popen"), ("functools", "partial"), ("_codecs", "encode")),
]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_pickle_reaches_no_object_of_a_package(module: str, name: str) -> None:
    unpickler = pickles.InertUnpickler(io.BytesIO())
    assert unpickler.find_class(module, name).__mro__[1:] == (pickles.InertValue, object)
    real = {unpickler.find_class(*name.rsplit(".", 1)) for name in pickles.REAL}
    assert real == {OrderedDict, set}, "containers alone"


@pytest.mark.parametrize("name", ["torch.onnx", "torch._inductor", "os.system", "torch.load", "x"])
def test_a_type_of_values_imports_nothing(name: str) -> None:
    """torch imports some of its packages when they are named."""
    before = set(sys.modules)
    with pytest.raises(ValueError, match="unknown type"):
        pickles.find_type(type(name, (), {}))
    assert set(sys.modules) == before


def test_a_pickle_changes_no_class() -> None:
    """State is stored in slots, so that no attribute of an object hides a method of ours."""
    pickled = b"\x80\x02cos\nsystem\n)\x81}(X\x05\0\0\0itemsK\x01X\x06\0\0\0fieldsK\x02ub."
    value = pickles.InertUnpickler(io.BytesIO(pickled)).load()
    assert value.items == {}
    assert value.fields == {"items": 1, "fields": 2}
    assert not hasattr(value, "__dict__")
    for target in (b"cos\nsystem\n", b"ccollections\nOrderedDict\n", b"c__builtin__\nset\n"):
        data = b"\x80\x02" + target + b"N}X\x01\0\0\0aK\x01s\x86b."
        with pytest.raises((TypeError, AttributeError)):
            pickles.InertUnpickler(io.BytesIO(data)).load()

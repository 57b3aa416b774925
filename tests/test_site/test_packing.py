"""Embedded data: nothing in it ends the element, and it comes back as it was."""

import base64
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.site.packing import embed_json, pack_bytes

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>\u2028\u2029&"


def test_hostile_text_cannot_end_the_element() -> None:
    text = embed_json({HOSTILE: [HOSTILE]})
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == {HOSTILE: [HOSTILE]}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_any_value_comes_back(value: object) -> None:
    assert json.loads(embed_json(value)) == value


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        embed_json([float("nan")])


@given(st.binary())
def test_bytes_come_back(data: bytes) -> None:
    assert zlib.decompress(base64.b64decode(pack_bytes(data))) == data

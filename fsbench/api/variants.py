"""The evaluation protocols by name, and in which fields two of them differ.

A name is ADAPTATION@PROTOCOL, probe or knn, with `:64px` behind it for another input size than 224.
Each is a version of the spec with a digest of its own, so no column ever holds two of them.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError

from fsbench.api.listing import flat
from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.probe_specs import KnnSpec, ProbeSpec
from fsbench.core.specs import POOLS, TRACKS, EpisodeSpec, EpisodicSpec, ImageSpec, Spec
from fsbench.core.tasks import PROTOCOLS, heads

SIZE = re.compile(r"(.*):(\d{1,6})px")


def variants() -> dict[str, Spec]:
    """Every protocol at its defaults, by name."""
    episodic = {
        f"{adaptation}@{protocol}": EpisodicSpec(
            protocol=protocol,
            adaptation=adaptation,
            episode=EpisodeSpec(pool=POOLS[protocol], track=TRACKS[protocol]),
        )
        for adaptation in heads()
        for protocol in PROTOCOLS
    }
    return {**episodic, "probe": ProbeSpec(), "knn": KnnSpec()}


def variant(name: str) -> Spec:
    """The spec of a name. Raises UnknownName with the nearest one, UsageError for a wrong size."""
    sized, known = SIZE.fullmatch(name), variants()
    base = sized[1] if sized else name
    if base not in known:
        raise UnknownName("protocol", base, known)
    if sized is None:
        return known[base]
    try:
        image = ImageSpec(input_size=int(sized[2]))
    except ValidationError as error:
        raise UsageError(f"'{name}': {error.errors()[0]['msg']} (px)", fix="e.g. :64px") from error
    return known[base].model_copy(update={"image": image})


def fields(spec: Spec) -> dict[str, Any]:
    """All fields under dotted names, e.g. episode.pool."""
    return flat(spec.model_dump(mode="json"))


def difference(a: str, b: str) -> dict[str, tuple[Any, Any]]:
    """Field -> its values in the protocols a and b, where they differ; None for a field that one
    does not have. Raises as `variant`."""
    left, right = fields(variant(a)), fields(variant(b))
    pairs = {f: (left.get(f), right.get(f)) for f in {**left, **right}}
    return {field: pair for field, pair in pairs.items() if pair[0] != pair[1]}

"""Wrappers and prefixes of common training programs."""

WRAPPERS = (
    "state_dict",
    "model",
    "model_state_dict",
    "state_dict_ema",
    "model_ema",
    "teacher",
    "student",
    "state",
)
PREFIXES = (
    "module.",
    "_orig_mod.",
    "teacher.backbone.",
    "momentum_encoder.",
    "backbone.",
    "encoder.",
    "model.",
    "feature.",
)

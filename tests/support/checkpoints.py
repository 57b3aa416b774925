"""Wrappers and prefixes of common training programs."""

WRAPPERS = ("state_dict", "model", "model_state_dict", "state_dict_ema", "model_ema")
WRAPPERS += ("teacher", "student", "state")
PREFIXES = ("module.", "_orig_mod.", "teacher.backbone.", "momentum_encoder.")
PREFIXES += ("backbone.", "encoder.", "model.", "feature.")

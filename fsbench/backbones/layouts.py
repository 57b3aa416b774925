"""Published layouts of checkpoint files: what the names in a file tell about its network.

A file of weights states no number of heads, activation, padding or normalisation. Where its names
show whose code wrote it, that code states them. A row of `LAYOUTS` holds what the cited code fixes
for every file of a layout, and nothing else. `LIBRARIES` only tells whose names they are.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fsbench.backbones.preprocessing import IMAGENET_MEAN, IMAGENET_STD
from fsbench.backbones.sources import Argument
from fsbench.core.specs import Triple

States = Iterable[tuple[str, Mapping[str, Any]]]
"""(dotted path, names and values) of the mappings of a checkpoint that hold tensors."""
LONGEST = 1000
"""Most letters of a name that are looked at."""

WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module", "_fpw_module", "_module",
            "_checkpoint_wrapped_module", "_forward_module")  # fmt: skip
"""Names under which wrappers hold the module that they wrap: data parallel, torch.compile, FSDP of
torch and FairScale, Opacus, checkpointed activations, Lightning Fabric."""


def drop_wrappers(name: str, modules: Collection[str] = ()) -> str:
    """Return a dotted name without the wrappers in it, except those that are in `modules`."""
    return ".".join(p for p in name.split(".") if p not in WRAPPERS or p in modules)


@dataclass(frozen=True)
class Layout:
    """A published layout, and what the code of its authors fixes.

    source: paper and code; patterns: each finds a name, with wrappers dropped; statistics: mean and
    std of images in [0, 1]; absent: pattern that finds no name; arguments: pattern of timm's names
    -> arguments of `timm.create_model`; renames: (pattern, replacement) pairs that give today's
    names; tf: whether its EfficientNets are those that timm calls `tf_`.
    """

    name: str
    source: str
    patterns: tuple[str, ...]
    statistics: tuple[Triple, Triple] | None = None
    absent: str = ""
    arguments: Mapping[str, Mapping[str, Argument]] = field(default_factory=dict)
    renames: tuple[tuple[str, str], ...] = ()
    tf: bool = False

    def fits(self, names: str) -> bool:
        """Return whether a file with these names, one a line, has this layout."""
        return all(re.search(pattern, names, re.M) for pattern in self.patterns) and not (
            self.absent and re.search(self.absent, names, re.M)
        )

    def arguments_for(self, architecture: str) -> dict[str, Argument]:
        """Return the arguments that the layout fixes for a network of timm."""
        rows = (row for pattern, row in self.arguments.items() if re.match(pattern, architecture))
        return dict(next(rows, {}))

    def rename(self, names: Iterable[str], target: Iterable[str]) -> dict[str, str]:
        """Return names of a file -> names as the network `target` has them."""
        renamed = {name: name for name in names}
        for pattern, replacement in self.renames:
            renamed = {name: re.sub(pattern, replacement, new) for name, new in renamed.items()}
        return rename_efficientnet(renamed, target) if self.tf else renamed


IMAGENET = IMAGENET_MEAN, IMAGENET_STD
STEM = (r"\b_conv_stem\.weight$", r"\b_blocks\.0\._depthwise_conv\.")
LAYOUTS = (
    Layout("MoCo v3", "https://arxiv.org/abs/2104.02057, github.com/facebookresearch/moco-v3",
           (r"\bbase_encoder\.", r"\bmomentum_encoder\.", r"\bpredictor\."), IMAGENET,
           arguments={r"(vit|deit)_small_patch16_": {"num_heads": 12}}),
    Layout("MoCo v3, by its positions", "github.com/facebookresearch/moco-v3, convert_to_deit.py",
           (r"\bmoco-v3-positions$",),
           arguments={r"(vit|deit)_small_patch16_": {"num_heads": 12}}),
    Layout("MoCo", "https://arxiv.org/abs/1911.05722, github.com/facebookresearch/moco",
           (r"\bencoder_q\.", r"\bencoder_k\.", r"\bqueue$"), IMAGENET),
    Layout("iBOT", "https://arxiv.org/abs/2111.07832, github.com/bytedance/ibot",
           (r"\bbackbone\.masked_embed$",), IMAGENET),
    Layout("DINOv2", "https://arxiv.org/abs/2304.07193, github.com/facebookresearch/dinov2",
           (r"\b(dino_head\.|ls1\.gamma$)", r"\b(mask_token|register_tokens|dino_head\..*)$"),
           IMAGENET, absent=r"\b(rope_embed|storage_tokens|decoder_embed)\b"),
    Layout("DINO", "https://arxiv.org/abs/2104.14294, github.com/facebookresearch/dino",
           (r"^(teacher|student)\.backbone\.", r"^(teacher|student)\.head\.(mlp|last_layer)\b"),
           IMAGENET),
    Layout("MAE", "https://arxiv.org/abs/2111.06377, github.com/facebookresearch/mae",
           (r"\bmask_token$", r"\bdecoder_embed\.", r"\bdecoder_pred\."), IMAGENET),
    Layout("SimMIM", "https://arxiv.org/abs/2111.09886, github.com/microsoft/SimMIM",
           (r"\bencoder\.mask_token$", r"\bdecoder\.0\.weight$"), IMAGENET),
    Layout("I-JEPA", "https://arxiv.org/abs/2301.08243, github.com/facebookresearch/ijepa",
           (r"^target_encoder\.blocks\.", r"^predictor\.predictor_embed\."), IMAGENET),
    Layout("MSN", "https://arxiv.org/abs/2204.07141, github.com/facebookresearch/msn",
           (r"^target_encoder\.", r"^encoder\.", r"^prototypes$"), IMAGENET),
    Layout("SwAV", "https://arxiv.org/abs/2006.09882, github.com/facebookresearch/swav",
           (r"\bprojection_head\.0\.", r"\bprototypes\.(weight|prototypes0\.)"),
           (IMAGENET_MEAN, (0.228, 0.224, 0.225))),
    Layout("CLIP of OpenAI", "https://arxiv.org/abs/2103.00020, github.com/openai/CLIP",
           (r"\bvisual\.", r"\binput_resolution$", r"\bcontext_length$"),
           ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
           arguments={r"vit_\w+_clip_": {"act_layer": "quick_gelu"},
                      r"ViT-[\w-]*$": {"quick_gelu": True}}),
    Layout("fine-tuning on averaged patches", "github.com/facebookresearch/mae, models_vit.py",
           (r"\bfc_norm\.weight$",), absent=r"^([^.]+\.){0,3}norm\.weight$",
           arguments={r"(test_)?(vit|deit3?|beit(v2)?|flexivit)(_|\d*$)": {"global_pool": "avg"}}),
    Layout("EfficientNet-Lite", "github.com/tensorflow/tpu, models/official/efficientnet/lite",
           STEM, ((127 / 255,) * 3, (128 / 255,) * 3), absent=r"\b_se_reduce\.", tf=True),
    Layout("EfficientNet-PyTorch", "github.com/lukemelas/EfficientNet-PyTorch",
           (*STEM, r"\b_se_reduce\."), tf=True),
    Layout("DenseNet of torchvision before 0.3", "github.com/pytorch/vision, models/densenet.py",
           (r"\bdenselayer1\.norm\.1\.weight$",),
           renames=((r"(denselayer\d+\.(?:norm|relu|conv))\.([12]\.)", r"\1\2"),)),
    Layout("transformer of torchvision before 0.14", "github.com/pytorch/vision, ops/misc.py",
           (r"\bencoder_layer_0\.mlp\.linear_1\.weight$",),
           renames=((r"\bmlp\.linear_1\.", "mlp.0."), (r"\bmlp\.linear_2\.", "mlp.3."))),
)  # fmt: skip
"""Rows that fix most come first: of two that fit, the first states mean and std."""

LIBRARIES = (
    ("OpenAI's CLIP and open_clip", r"\bvisual\.", "pass FILE@open_clip:ARCH"),
    ("EfficientNet-PyTorch", STEM[0], "pass FILE@tf_efficientnet_b0 or the like"),
    ("flattened FSDP", r"\b_?flat_param\b", "save it with StateDictType.FULL_STATE_DICT"),
    ("PEFT adapters", r"\blora_[AB]\b", "merge them into the network: merge_and_unload()"),
    ("quantised weights", r"_packed_params|\.quant_state|\.absmax$", "save them as float32"),
    ("JAX or Keras", r"/(kernel|scale|gamma)(:0)?$", "convert it to PyTorch"),
    ("transformers", r"\bembeddings\.|\bencoder\.layers?\.\d|\bembedder\.embedder\.",
     "put its config.json beside it and pass transformers:DIR"),
    ("detectron2", r"\b(stem\.conv1|res[2-5]\.\d+\.conv1)\.norm\.", "convert it to torchvision"),
    ("MMPretrain or MMDetection", r"\bffn\.layers\.0\.0\.|\bpatch_embed\.projection\.",
     "convert it to timm's names"),
    ("fairseq", r"\bmodality_encoders\.|\bsentence_encoder\.", "convert it to timm's names"),
    ("Ultralytics", r"\bmodel\.\d+\.(conv|cv1)\.", "pass py:PKG.MOD:FUNCTION for its network"),
    ("torchvision", r"\bencoder_layer_0\.|\bfeatures\.\d+\.(\d+\.(block|attn)\.|weight|squeeze)",
     "pass FILE@torchvision/NAME"),
    ("timm", r"\bblocks\.\d+\.(attn\.|norm1\.|\d+\.conv_)|\bstages\.\d+\.", "pass its timm name"),
    ("torchvision and timm", r"\blayer1\.0\.(conv1|bn1)\.", "pass FILE@resnet50 or the like"),
)  # fmt: skip
"""Whose names a file has: (library, pattern, what to do)."""

LAYERS = {"_expand_conv": "conv_pw", "_depthwise_conv": "conv_dw", "_project_conv": "conv_pwl",
          "_se_reduce": "se.conv_reduce", "_se_expand": "se.conv_expand",
          "_conv_stem": "conv_stem", "_conv_head": "conv_head", "_fc": "classifier"}  # fmt: skip


def rename_efficientnet(names: Mapping[str, str], target: Iterable[str]) -> dict[str, str]:
    """Return names of EfficientNet-PyTorch as timm's, which count blocks by stage."""
    places = list(dict.fromkeys(m[0] for n in target if (m := re.match(r"blocks\.\d+\.\d+\.", n))))
    expanded = {m[1] for n in names.values() if (m := re.search(r"_blocks\.(\d+)\._expand", n))}

    def rename(parts: re.Match[str]) -> str:
        i, layer = parts["block"], parts["layer"]
        separable = i is not None and i not in expanded
        place = "" if i is None else places[int(i)] if int(i) < len(places) else f"blocks.{i}."
        if layer.startswith("_bn"):
            return f"{place}bn{int(layer[3:]) + (not separable)}."
        short = separable and layer == "_project_conv"
        return f"{place}{'conv_pw' if short else LAYERS.get(layer, layer)}."

    pattern = r"\b(_blocks\.(?P<block>\d{1,3})\.)?(?P<layer>_(bn\d|[a-z][a-z_]+))\."
    return {name: re.sub(pattern, rename, new, count=1) for name, new in names.items()}


def has_moco_positions(tensor: Tensor) -> bool:
    """Return whether positions (1, 1 + N, D) are the fixed ones of MoCo v3, and not of MAE.

    Those of the first row of patches are 0 in their first half, of the row, up to its cosines.
    """
    plain = tensor.layout == torch.strided and tensor.is_floating_point() and not tensor.is_meta
    if not plain or tensor.ndim != 3 or tensor.shape[1] < 5 or tensor.shape[2] % 4:
        return False
    n = tensor.shape[2] // 4
    angles = 10000.0 ** -(torch.arange(n) / n)
    second = torch.cat([torch.zeros(n), torch.ones(n), angles.sin(), angles.cos()])
    first, _, patch = tensor[0, :3].float()
    return torch.allclose(patch, second, atol=1e-3) and not first.any()


def write_names(states: States) -> str:
    """Return the dotted names of all tensors, one a line, without wrappers, and marks of values."""
    lines = []
    for where, state in states:
        for name, value in state.items():
            if isinstance(value, Tensor):
                lines.append(drop_wrappers(f"{where}.{name}".removeprefix("."))[:LONGEST])
                if name.endswith("pos_embed") and has_moco_positions(value):
                    lines.append("moco-v3-positions")
    return "\n".join(lines)


def recognise_layouts(states: States) -> list[Layout]:
    """Return the published layouts of a checkpoint, in the order of LAYOUTS."""
    names = write_names(states)
    return [layout for layout in LAYOUTS if layout.fits(names)]


def recognise_library(states: States) -> tuple[str, str]:
    """Return whose names a checkpoint has, and what to do; empty texts if nobody's is known."""
    names = write_names(states)
    rows = ((name, fix) for name, pattern, fix in LIBRARIES if re.search(pattern, names, re.M))
    return next(rows, ("", ""))

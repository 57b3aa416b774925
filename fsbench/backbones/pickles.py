"""Pickled checkpoint files as data: torch's zip and legacy formats, and TorchScript archives.

A pickle is a program that may call any function of any package. Here each class and function that
it names becomes an InertValue, which does nothing, and nothing is imported. Of what remains, the
calls that torch writes for tensors become tensors, and pickled networks become their state dicts.
torch.load(weights_only=True) refuses a file for a single foreign object beside its weights.
"""

import io
import pickle
import pickletools
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

MOST_BITS, MOST_CLASSES, MOST_OBJECTS = 1 << 12, 10_000, 1_000_000
"""Limits of an integer, of the classes that a file names, and of the objects of a network."""

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
MAGIC = MAGIC_NUMBER.to_bytes(10, "little")
"""First pickle of torch's legacy format; a version, the sizes of C types, the tree and the keys of
the storages follow. Then comes each storage: the number of its values, and the values."""
LEGACY_PICKLES = 5

REAL = {"collections.OrderedDict": OrderedDict, "builtins.set": set, "__builtin__.set": set}
"""Containers that a pickle may create: they store what they get and call nothing."""
REBUILD = "torch._utils._rebuild_"
TENSORS = {f"{REBUILD}tensor", f"{REBUILD}tensor_v2", f"{REBUILD}tensor_v3"}
COPIES = {f"{REBUILD}parameter", f"{REBUILD}parameter_with_state"}
"""Calls of torch for tensors; of a parameter, the tensor is the first argument."""
OTHER_TYPES = {"char": torch.int8, "byte": torch.uint8, "untyped": torch.uint8,
               "complexfloat": torch.complex64, "complexdouble": torch.complex128}  # fmt: skip
"""Types of values by the name of a storage, where torch has no type of this name."""


class InertValue:
    """Stand-in for a pickled object, class or call, which stores what the pickle gives it.

    Its subclasses are named as what they stand for, e.g. 'argparse.Namespace'.
    """

    __slots__ = ("args", "items", "state")

    args: tuple[Any, ...]
    items: dict[Any, Any]
    state: object

    def __new__(cls, *args: object, **options: object) -> "InertValue":
        value = super().__new__(cls)
        value.args, value.items, value.state = args, {}, None
        return value

    def __call__(self, *args: object) -> "InertValue":
        return self

    def __setstate__(self, state: object) -> None:
        self.state = state

    def __setitem__(self, key: object, value: object) -> None:
        self.items[key] = value

    def extend(self, values: object) -> None:
        """Leave out the items of a list."""

    append = extend

    @property
    def fields(self) -> dict[Any, Any]:
        """Attributes and items by name."""
        parts = self.state if isinstance(self.state, tuple) else (self.state,)
        attributes = [part for part in parts if isinstance(part, dict)]
        return {k: v for part in (*attributes, self.items) for k, v in part.items()}

    @property
    def is_network(self) -> bool:
        """Return whether it stands for an nn.Module, or for one of TorchScript."""
        script = type(self).__name__.startswith("__torch__.")
        return script or {"_parameters", "_buffers", "_modules"} <= self.fields.keys()


class InertUnpickler(pickle.Unpickler):
    """Unpickler that imports nothing. sizes: bytes of a value of each storage, by its key."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, encoding="latin1")
        self.classes: dict[str, type[InertValue]] = {}
        self.sizes: dict[str, int] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Return a class of InertValue in place of the object that the pickle names."""
        path = f"{module}.{name}"
        if path not in REAL and path not in self.classes:
            if len(self.classes) == MOST_CLASSES:
                raise pickle.UnpicklingError(f"it names more than {MOST_CLASSES} classes")
            self.classes[path] = type(path, (InertValue,), {"__slots__": ()})
        return REAL.get(path) or self.classes[path]

    def persistent_load(self, identity: Any) -> Any:
        """Return the description of a storage; of a class with its source code, the class."""
        kind, value, *more = identity
        if kind == "module":
            return value
        self.sizes[more[0]] = find_type(value).itemsize
        return identity


def find_type(named: type) -> torch.dtype:
    """Return the type of values that a class stands for, e.g. torch.FloatStorage."""
    name = named.__name__.rpartition(".")[2].removesuffix("Storage").lower()
    dtype = OTHER_TYPES.get(name) or vars(torch).get(name)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"it has values of the unknown type {name}")
    return dtype


def read_zip(path: Path) -> object:
    """Return the tree in a zip of torch.save or TorchScript; each checksum must be right."""
    with zipfile.ZipFile(path) as archive:
        stored = [m for m in archive.infolist() if m.compress_type == zipfile.ZIP_STORED]
        members = {member.filename: member for member in stored}
        if sum(member.file_size for member in members.values()) > path.stat().st_size:
            raise ValueError("it unpacks to more than it holds")

        folder = next((n[:-8] for n in members if n.split("/")[1:] == ["data.pkl"]), "")
        data = archive.read(members[f"{folder}data.pkl"])
        check_opcodes(io.BytesIO(data), 1)
        tree = InertUnpickler(io.BytesIO(data)).load()
        return Tree(lambda key: archive.read(members[f"{folder}data/{key}"])).read(tree)


def read_legacy(path: Path) -> object:
    """Return the tree in a file of torch before 1.6."""
    with path.open("rb") as file:
        check_opcodes(file, LEGACY_PICKLES)
        file.seek(0)
        for _ in range(3):  # the magic number, the version and the sizes of C types
            InertUnpickler(file).load()
        unpickler = InertUnpickler(file)
        tree = unpickler.load()
        storages = {}
        for key in InertUnpickler(file).load():
            n_bytes = int.from_bytes(file.read(8), "little") * unpickler.sizes[key]
            storages[key] = file.read(min(n_bytes, path.stat().st_size))
            if len(storages[key]) < n_bytes:
                raise EOFError("its end is missing")
    return Tree(storages.pop).read(tree)


def check_opcodes(stream: IO[bytes], pickles: int) -> None:
    """Raise ValueError for opcodes that use more memory than their length, or a class in memory.

    The unpickler allocates up to the largest position of PUT. Printing an integer takes quadratic
    time.
    """
    for _ in range(pickles):
        for opcode, argument, position in pickletools.genops(stream):
            number = argument if isinstance(argument, int) else 0
            too_far = "PUT" in opcode.name and number > (position or 0)
            if too_far or number.bit_length() > MOST_BITS or opcode.name.startswith("EXT"):
                raise ValueError(f"torch.save writes no such {opcode.name}")


class Tree:
    """Conversion of what a pickle describes: calls to tensors, networks to state dicts.

    read_storage: key of a storage -> its bytes.
    """

    def __init__(self, read_storage: Callable[[str], bytes]) -> None:
        self.read_storage = read_storage
        self.storages: dict[str, Tensor] = {}
        self.resolved: dict[int, Any] = {}
        self.count = 0

    def read(self, tree: object) -> object:
        """Return the tree of a file; of an object that is no network, its attributes."""
        if isinstance(tree, InertValue) and not tree.is_network and tree.fields:
            tree = dict(tree.fields)
        return self.resolve(tree)

    def resolve(self, value: object) -> Any:
        """Return mappings, networks and tensors as such, and anything else as it is."""
        if isinstance(value, dict | InertValue) and id(value) not in self.resolved:
            self.resolved[id(value)] = mapping = {}
            if isinstance(value, dict):
                mapping.update({key: self.resolve(item) for key, item in value.items()})
            else:
                self.resolved[id(value)] = self.convert(value)
        return self.resolved.get(id(value), value)

    def convert(self, value: InertValue) -> Any:
        """Return the tensor, state dict or mapping that an object stands for, else the object."""
        name, args = type(value).__name__, value.args
        if name in TENSORS:
            return self.tensor(*args)
        if name in COPIES:
            return self.resolve(args[0])
        if value.is_network:
            return dict(self.weights(value))
        return self.resolve(value.items) if value.items else value

    def tensor(self, storage: Any, start: int, size: Any, stride: Any, *more: Any) -> Tensor:
        """Return the tensor of a call of torch; its seventh argument is a type without storage.

        storage: ("storage", class, key, device, values), before torch 0.4 also a view of it.
        """
        _, kind, key, _, _, *view = storage
        if key not in self.storages:
            data = bytearray(self.read_storage(key))
            values = torch.frombuffer(data or bytearray(1), dtype=torch.uint8)
            self.storages[key] = values[: len(data)]
        dtype = find_type(more[2] if len(more) > 2 and isinstance(more[2], type) else kind)
        start += view[0][1] if view and view[0] else 0
        return self.storages[key].view(dtype).as_strided(size, stride, start)

    def weights(self, network: InertValue, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Yield the names and values that the state dict of a pickled network has."""
        fields = network.fields
        if "_modules" in fields:
            temporary = fields.get("_non_persistent_buffers_set") or ()
            buffers = {k: v for k, v in fields["_buffers"].items() if k not in temporary}
            fields = {**fields["_parameters"], **buffers, **fields["_modules"]}
        self.count += len(fields)
        if self.count > MOST_OBJECTS:
            raise ValueError(f"it describes more than {MOST_OBJECTS} objects")
        for name, value in fields.items():
            if isinstance(value, InertValue) and value.is_network:
                yield from self.weights(value, f"{prefix}{name}.")
            elif isinstance(tensor := self.resolve(value), Tensor):
                yield f"{prefix}{name}", tensor

"""Archive: the arrays of an untrusted `.npz` file, whose headers are checked before anything is read.

`numpy.load` believes a header: with a few megabytes it can allocate terabytes.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from typing import NamedTuple

import numpy as np

DAMAGE = (
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    OverflowError,
    RecursionError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Errors of reading a damaged file."""

_MOST_DEFLATED = 1032
"""Bytes that one byte of deflate can stand for."""
_ENCRYPTED = 1
_NPY = ".npy"


class Kind(NamedTuple):
    """Dtype and shape of an array in a file."""

    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


class Archive:
    """The arrays of the `.npz` file `data`; every method raises one of DAMAGE for no such file, or false headers."""

    def __init__(self, data: bytes) -> None:
        self._file = zipfile.ZipFile(io.BytesIO(data))
        self._members = {info.filename.removesuffix(_NPY): info for info in self._file.infolist()}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def kind(self, name: str) -> Kind:
        """Read an array's header, and nothing else of it."""
        info = self._members[name]
        if info.flag_bits & _ENCRYPTED:
            raise ValueError(f"{name} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is compressed in a way that NumPy does not use")
        with self._file.open(info) as file:
            version = np.lib.format.read_magic(file)
            if version not in ((1, 0), (2, 0)):
                raise ValueError(f"{name} is an array of format {version}")
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
            kind, header_size = Kind(dtype, shape), file.tell()
        if dtype.hasobject:
            raise ValueError(f"{name} holds Python objects, which are never loaded")
        if min(shape, default=0) < 0 or header_size + kind.size != info.file_size:
            raise ValueError(f"{name} says that it has {kind.size:,} bytes, and has {info.file_size - header_size:,}")
        if info.file_size > max(info.compress_size, 1) * _MOST_DEFLATED:
            raise ValueError(f"{name} says that it has more bytes than can be in the file")
        return kind

    def read(self, name: str) -> np.ndarray:
        self.kind(name)
        with self._file.open(self._members[name]) as file:
            return np.lib.format.read_array(file, allow_pickle=False)

"""Tensors in files of the format safetensors, which the library of that name reads and writes, too.

    8 bytes    the length of the header, little-endian
    header     JSON: {name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [first, end]}, ...}
    the rest   the elements of the tensors, one after the other

The format is documented at https://github.com/huggingface/safetensors. Checkpoints are written
here so that they need torch alone; the bytes are those that the library writes.
"""

import ctypes
import json
import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import torch

DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E4M3": torch.float8_e4m3fn,
    "I16": torch.int16,
    "U16": torch.uint16,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I32": torch.int32,
    "U32": torch.uint32,
    "F32": torch.float32,
    "C64": torch.complex64,
    "F64": torch.float64,
    "I64": torch.int64,
    "U64": torch.uint64,
}
"""The format's names, in the order in which it aligns them."""
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_ORDER = list(DTYPES.values())


def save_file(tensors: dict[str, torch.Tensor], path: Path) -> None:
    """Write contiguous `tensors`, on any device. Raises ValueError, before it writes, for a dtype
    that the format does not have."""
    for name, tensor in tensors.items():
        if tensor.dtype not in _NAMES:
            raise ValueError(
                f"{name} is of {tensor.dtype}, which no file of safetensors holds: it holds "
                f"{', '.join(str(dtype).removeprefix('torch.') for dtype in _ORDER)}"
            )
    ordered = sorted(tensors, key=lambda name: (-_ORDER.index(tensors[name].dtype), name))
    header, end = {}, 0
    for name in ordered:
        tensor = tensors[name]
        first, end = end, end + tensor.nbytes
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [first, end],
        }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in ordered:
            tensor = tensors[name].cpu()
            file.write(_memory(tensor))


class TensorFile:
    """An open file of tensors, each of which is read when it is asked for."""

    def __init__(self, file: BinaryIO):
        (length,) = struct.unpack("<Q", file.read(8))
        self._header: dict[str, dict[str, Any]] = json.loads(file.read(length))
        self._header.pop("__metadata__", None)
        self._file, self._data = file, 8 + length

    def names(self) -> list[str]:
        return list(self._header)

    def read(self, name: str) -> torch.Tensor:
        """Return a tensor, on the CPU."""
        entry = self._header[name]
        tensor = torch.empty(entry["shape"], dtype=DTYPES[entry["dtype"]])
        self._file.seek(self._data + entry["data_offsets"][0])
        if self._file.readinto(_memory(tensor)) != tensor.nbytes:  # type: ignore[attr-defined]
            raise ValueError(f"{self._file.name} ends within {name}")
        return tensor


@contextmanager
def open_file(path: Path) -> Iterator[TensorFile]:
    """Open the tensors of a file inside the block."""
    with path.open("rb") as file:
        yield TensorFile(file)


def _memory(tensor: torch.Tensor) -> memoryview:
    """Return the elements of a contiguous tensor on the CPU, as bytes that can be written to."""
    assert tensor.is_contiguous()
    if not math.prod(tensor.shape):
        return memoryview(bytearray())
    return memoryview((ctypes.c_char * tensor.nbytes).from_address(tensor.data_ptr())).cast("B")

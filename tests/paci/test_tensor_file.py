"""Files of tensors against the library of the format, in both directions."""

import pytest
import safetensors.torch
import torch

from paci.tensor_file import DTYPES, open_file, save_file


def any_tensors() -> dict[str, torch.Tensor]:
    """A tensor of every dtype, and some of unusual names and shapes."""
    torch.manual_seed(0)
    tensors = {}
    for number, dtype in enumerate(DTYPES.values()):
        bytes_ = torch.randint(0, 2, (3 * dtype.itemsize,), dtype=torch.uint8)
        tensors[f"tensor-{number % 3}/{number}"] = bytes_.view(dtype)
    tensors['ünïcode "quoted"'] = torch.randn(2, 3, 4)
    tensors["scalar"] = torch.tensor(1.5)
    tensors["empty"] = torch.empty(0, 3)
    return tensors


def same(one, other):
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype
        and one[name].shape == other[name].shape
        and torch.equal(bits(one[name]), bits(other[name]))
        for name in one
    )


def bits(tensor):
    return tensor.reshape(-1).view(torch.uint8)


def test_the_bytes_are_those_of_the_library(tmp_path):
    save_file(any_tensors(), tmp_path / "own")
    safetensors.torch.save_file(any_tensors(), tmp_path / "library")
    assert (tmp_path / "own").read_bytes() == (tmp_path / "library").read_bytes()


def test_a_file_of_the_library_is_read(tmp_path):
    safetensors.torch.save_file(any_tensors(), tmp_path / "library", metadata={"format": "pt"})
    with open_file(tmp_path / "library") as file:
        assert same({name: file.read(name) for name in file.names()}, any_tensors())


def test_a_file_that_was_cut_off_is_refused(tmp_path):
    path = tmp_path / "cut"
    save_file({"a": torch.ones(8)}, path)
    path.write_bytes(path.read_bytes()[:-1])
    with open_file(path) as file, pytest.raises(ValueError, match="ends within a"):
        file.read("a")


def test_a_dtype_without_a_name_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match=r"a is of torch.complex128, .* it holds .*float32"):
        save_file({"a": torch.ones(1, dtype=torch.complex128)}, tmp_path / "file")
    assert not (tmp_path / "file").exists()

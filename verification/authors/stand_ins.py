"""Stand-ins, put in place at run time, for what the authors' code needs and this project lacks.

Their repository is written for CUDA devices and a patched build of PyTorch 2.4. Importing this
module, in a process whose path has the checkout, gives it stand-ins; what they train is untouched:

    sklearn, tensorboard, datasets, transformers
                                imported for the name of a warning, logs, data and tokenisers, none
                                of which is used here: modules with these names only
    torch.set_freeze_version_update
                                the switch of the patched build that lets an update pass between a
                                forward and its backward: stock PyTorch's own means for it
    torch.cuda                  synchronising, free memory, cache: nothing to do on a CPU
    torch.autocast              the same types, on the device that there is
    torch.distributed.rpc       no devices to map; a port of this run's own, not 29358 for all
    device of a stage           the CPU
    message queues              exist from the start: a message that arrives before the receiver
                                has made its queue is lost, and all wait for ever

Every process of theirs has to import it: the program that drives them does so, and Python's spawn
imports that program in each of its children.
"""

import os
import sys
import threading
import types
from collections import defaultdict
from importlib.machinery import ModuleSpec
from typing import Any

import torch
import torch.distributed.rpc as rpc

from verification.authors.recording import PORT

PACKAGES: dict[str, dict[str, object]] = {
    "sklearn": {},
    "sklearn.exceptions": {"UndefinedMetricWarning": type("Warned", (UserWarning,), {})},
    "torch.utils.tensorboard": {"SummaryWriter": object},
    "datasets": {"load_dataset": None, "load_from_disk": None},
    "transformers": {"AutoTokenizer": None, "GPT2Tokenizer": None},
}


def _replace(owner: Any, **names: object) -> None:
    for name, stand_in in names.items():
        setattr(owner, name, stand_in)


def _replace_packages() -> None:
    for name, content in PACKAGES.items():
        module = types.ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        _replace(module, **content)
        sys.modules[name] = module


class _FreezeVersions:
    """A context in which the parameters of the worker that opens it may change in place without
    autograd noticing."""

    def __init__(self) -> None:
        worker = sys._getframe(1).f_locals["self"]
        parameters = tuple(worker.layer.parameters())
        self._context = torch.autograd.grad_mode._unsafe_preserve_version_counter(parameters)

    def __enter__(self) -> None:
        self._context.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self._context.__exit__(*raised)


class _Autocast(torch.autocast):
    def __init__(self, device_type: str, **options: Any) -> None:
        super().__init__("cpu", **options)


def _replace_devices() -> None:
    _replace(
        torch.cuda,
        synchronize=lambda *_: None,
        empty_cache=lambda: None,
        mem_get_info=lambda *_: (1 << 40, 1 << 40),
    )
    _replace(torch, autocast=_Autocast, set_freeze_version_update=_FreezeVersions)


class _Options(rpc.TensorPipeRpcBackendOptions):
    def __init__(self, **_: object) -> None:
        super().__init__(rpc_timeout=300, num_worker_threads=4)


def _replace_rpc() -> None:
    init_rpc: Any = rpc.init_rpc

    def init_rpc_at_own_port(*arguments: Any, **options: Any) -> None:
        os.environ["MASTER_PORT"] = os.environ[PORT]
        init_rpc(*arguments, **options)

    _replace(rpc, init_rpc=init_rpc_at_own_port, TensorPipeRpcBackendOptions=_Options)


class _Conditions(dict[str, threading.Condition]):
    """A condition for every name, made when first asked for."""

    def __init__(self, locks: dict[str, threading.Lock]) -> None:
        super().__init__()
        self._locks = locks

    def __missing__(self, name: str) -> threading.Condition:
        return self.setdefault(name, threading.Condition(self._locks[name]))


class _Locks(dict[str, threading.Lock]):
    def __missing__(self, name: str) -> threading.Lock:
        return self.setdefault(name, threading.Lock())


def _replace_in_their_modules() -> None:
    from DistPACI import Communications, PACIModel

    locks = _Locks()
    _replace(
        Communications,
        rank_locks=locks,
        rank_conds=_Conditions(locks),
        rank_storage=defaultdict(dict),
    )

    def all_on_cpu(model: Any, _: object) -> None:
        stages = model._PACIModel__config.split_to
        model._PACIModel__devices = [torch.device("cpu")] * stages

    _replace(PACIModel, _PACIModel__build_comm=all_on_cpu)


torch.set_num_threads(1)  # rounding depends on it
_replace_packages()
_replace_devices()
_replace_rpc()
_replace_in_their_modules()

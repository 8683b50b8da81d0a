"""Jobs are closures, which submitit carries by value: their processes start at once."""

import os
import time
from itertools import pairwise

import pytest
from omegaconf import OmegaConf

from experiments.grid.dispatch import dispatch, places


def cluster(name, parallel):
    return OmegaConf.create({"name": name, "parallel": parallel})


def napper(folder, seconds):
    """A job that leaves a file with its process and when it began and ended."""

    def nap(name):
        begin = time.monotonic()
        try:
            (folder / f"{name}.began").touch()
            time.sleep(seconds)
        except KeyboardInterrupt:
            time.sleep(0.1)  # to put things in order; submitit grants a second
        text = f"{os.getpid()} {begin} {time.monotonic()}"
        (folder / name).write_text(text)
        return name.upper()

    return nap


def naps(folder, names):
    return [tuple(float(word) for word in (folder / name).read_text().split()) for name in names]


def test_never_more_than_fit(tmp_path):
    names = [*"abcde"]
    job = napper(tmp_path, 0.2)
    events = list(dispatch(job, names, cluster("local", 2), tmp_path / "jobs", wait=0.01))
    ended = [event for event in events if event is not None]
    assert {(name, job.result()) for name, job in ended} == {(n, n.upper()) for n in names}
    assert None in events  # time to show progress

    processes, *_ = done = [*zip(*naps(tmp_path, names), strict=True)]
    assert len(set(processes)) == 5
    _, begins, ends = done
    at_once = [sum(b <= now < e for b, e in zip(begins, ends, strict=True)) for now in begins]
    assert max(at_once) <= 2


def test_inline_is_one_after_the_other_in_this_process(tmp_path):
    names = [*"abc"]
    ended = dispatch(napper(tmp_path, 0.01), names, cluster("inline", 1), tmp_path / "jobs")
    assert [event[0] for event in ended if event] == names
    done = naps(tmp_path, names)
    assert {process for process, _, _ in done} == {os.getpid()}
    assert all(a[2] <= b[1] for a, b in pairwise(done))


@pytest.mark.parametrize("how", [KeyboardInterrupt, GeneratorExit])
def test_an_interrupt_reaches_the_jobs_and_waits_for_them(tmp_path, how):
    job = napper(tmp_path, 60)
    jobs = dispatch(job, [*"abc"], cluster("local", 2), tmp_path / "jobs", wait=0.01)
    while not all((tmp_path / f"{name}.began").exists() for name in "ab"):
        assert next(jobs) is None
    with pytest.raises(how):
        jobs.throw(how)
    assert (tmp_path / "a").exists()  # both put things in order
    assert (tmp_path / "b").exists()
    assert not (tmp_path / "c.began").exists()


def test_an_interrupted_inline_job_ends_the_others_before_they_begin(tmp_path):
    def interrupted(name):
        (tmp_path / name).touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(dispatch(interrupted, [*"abc"], cluster("inline", 2), tmp_path / "jobs"))
    assert (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()


def test_a_place_for_each_core_or_gpu(monkeypatch):
    assert places(cluster("local", 3), "cpu") == [None] * 3
    assert places(cluster("local", None), "cpu") == [None] * os.cpu_count()
    assert places(cluster("inline", 1), "cuda") == [None]  # which sees what we see
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,GPU-7")
    assert places(cluster("local", None), "cuda") == ["4", "GPU-7"]
    assert places(cluster("local", 3), "cuda") == ["4", "GPU-7", "4"]
    assert places(cluster("local", 1), "cuda") == ["4"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4")
    assert places(cluster("local", None), "cuda", ranks=2) == ["0,1", "2,3"]
    assert places(cluster("local", 3), "cuda", ranks=4) == ["0,1,2,3"] * 3
    assert places(cluster("local", None), "cuda", ranks=8) == ["0,1,2,3,4"]
    assert places(cluster("local", None), "cpu", ranks=10**6) == [None]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert places(cluster("local", None), "cuda") == [""]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert places(cluster("local", None), "cuda") == ["0", "1"]


def test_runs_at_a_time_have_a_gpu_each(tmp_path, monkeypatch):
    def gpu(_):
        return os.environ["CUDA_VISIBLE_DEVICES"]

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    ended = dispatch(gpu, "ab", cluster("local", None), tmp_path / "jobs", "cuda", wait=0.01)
    assert {name: job.result() for name, job in filter(None, ended)} == {"a": "4", "b": "5"}

"""Worker processes of DataLoaders: the same batches in the same order, and what is left alone."""

from __future__ import annotations

import pytest

from tests.in_job.changes.conftest import Programs

EPOCHS = """
from torch.utils.data import DataLoader
torch.manual_seed(7)
class Own(DataLoader):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.mine = self.num_workers
data = torch.arange(10.0)
loaders = [Own(data, 4, True), DataLoader(dataset=data, batch_size=3)]
loaders.append(DataLoader(data, 4, True, None, None, 1))
out["batches"] = [[x.tolist() for x in loader] for _ in range(3) for loader in loaders]
out["after"] = torch.rand(1).item()
out["workers"] = [[l.num_workers, l.persistent_workers, l.pin_memory] for l in loaders]
out["mine"] = loaders[0].mine
"""


def test_batches_and_random_numbers_are_those_without_workers(programs: Programs) -> None:
    """Three passes: with persistent workers only the first one draws a seed by itself."""
    plain, changed = programs.run(code=EPOCHS), programs.run("loader-workers=2", code=EPOCHS)
    assert changed.only == ("change-applied", "loader-workers=2: 3 DataLoaders got 2 worker processes")
    assert changed.out["workers"] == [[2, True, False]] * 3
    assert changed.out["mine"] == 2
    assert plain.out["workers"] == [[0, False, False], [0, False, False], [1, False, False]]
    assert changed.out["batches"] == plain.out["batches"]
    assert changed.out["after"] == plain.out["after"]
    assert plain.out["batches"][0] != plain.out["batches"][3], "shuffled anew"


GIVEN = """
loader = torch.utils.data.DataLoader(torch.arange(4.0), num_workers=6, prefetch_factor=3,
    multiprocessing_context="fork", generator=torch.Generator())
out["found"] = [loader.num_workers, loader.prefetch_factor, loader.pin_memory,
    loader.multiprocessing_context.get_start_method(), loader.generator is not None]
"""


def test_what_the_program_gave_stays(programs: Programs) -> None:
    """Memory is pinned where there is a GPU."""
    there = "torch.cuda.is_available = lambda: True"
    found = programs.run("loader-workers", code=GIVEN, before=there)
    assert found.error is None
    assert found.out["found"] == [6, 3, True, "fork", True]


AHEAD = """
data = torch.arange(40.0)
loader = torch.utils.data.DataLoader(data, 2, num_workers=2)
out["ahead"] = [len(iter(loader)._task_info), loader.prefetch_factor]
out["batches"] = [x.tolist() for x in loader]
"""


def test_workers_load_more_batches_ahead(programs: Programs) -> None:
    plain, changed = programs.run(code=AHEAD), programs.run("loader-prefetch=5", code=AHEAD)
    assert changed.only == (
        "change-applied",
        "loader-prefetch=5: workers of 1 DataLoader load 5 batches ahead",
    )
    assert plain.out["ahead"] == [2 * 2, 2]
    assert changed.out["ahead"] == [2 * 5, 5]
    assert changed.out["batches"] == plain.out["batches"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("", "the DataLoader has no worker process, and loads each batch when it is asked for it"),
        ("num_workers=1, prefetch_factor=9", "each worker of a DataLoader loads 9 batches ahead already"),
    ],
)
def test_what_cannot_load_ahead_is_told(programs: Programs, arguments: str, why: str) -> None:
    found = programs.run("loader-prefetch", code=f"torch.utils.data.DataLoader([1, 2], {arguments})")
    assert found.only == ("change-not-applied", f"loader-prefetch=8 changed nothing: {why}")


def test_workers_that_a_change_has_given_load_ahead_too(programs: Programs) -> None:
    code = "out['found'] = torch.utils.data.DataLoader([1, 2]).prefetch_factor"
    found = programs.run("loader-prefetch=5", "loader-workers=2", code=code)
    assert found.out["found"] == 5


ITERABLE = """
class Stream(torch.utils.data.IterableDataset):
    def __iter__(self): return iter(range(3))
loader = torch.utils.data.DataLoader(Stream(), batch_size=None)
out["found"] = [loader.num_workers, list(loader)]
"""
DAEMON = """
import multiprocessing
multiprocessing.current_process()._config["daemon"] = True
out["found"] = list(torch.utils.data.DataLoader(torch.arange(2), batch_size=None)) == [0, 1]
"""
ON_GPU = """
class Tensor: is_cuda = True
class Data:
    tensors = (Tensor(),)
    def __len__(self): return 2
class Part(Data):
    tensors = None
    dataset = Data()
out["found"] = torch.utils.data.DataLoader(Part()).num_workers
"""


@pytest.mark.parametrize(
    ("code", "why", "found"),
    [
        (
            ITERABLE,
            "the DataLoader reads an IterableDataset, of which each worker",
            [0, [0, 1, 2]],
        ),
        (DAEMON, "the DataLoader is made in a daemonic process", True),
        (ON_GPU, "the data set is on the GPU already", 0),
        ("", "the program made no DataLoader", None),
    ],
)
def test_what_is_left_alone_says_why(programs: Programs, code: str, why: str, found: object) -> None:
    answer = programs.run("loader-workers=2", code=code)
    assert answer.only[0] == "change-not-applied"
    assert answer.only[1].startswith(f"loader-workers=2 changed nothing: {why}")
    assert answer.out.get("found") == found


def test_a_wrong_call_fails_as_it_does_without_changes(programs: Programs) -> None:
    code = "torch.utils.data.DataLoader(torch.arange(3), batch_size=2, bogus=1)"
    plain, changed = programs.run(code=code), programs.run("loader-workers", code=code)
    assert plain.error is not None
    assert changed.error is not None
    assert changed.error.splitlines()[-1] == plain.error.splitlines()[-1]


def test_what_the_constructor_refuses_with_workers_it_gets_without(programs: Programs) -> None:
    strict = """
from torch.utils.data import DataLoader
own = DataLoader.__init__
def strict(self, dataset, batch_size=1, num_workers=0, persistent_workers=False):
    if num_workers:
        raise ValueError("no workers here")
    own(self, dataset, batch_size)
DataLoader.__init__ = strict
"""
    code = "out['found'] = len(list(torch.utils.data.DataLoader(torch.arange(4), 2)))"
    answer = programs.run("loader-workers", code=code, before=strict)
    assert answer.out["found"] == 2
    assert answer.only == (
        "change-not-applied",
        "loader-workers=4 changed nothing: DataLoader does not take it: no workers here",
    )

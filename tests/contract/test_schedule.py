"""The schedule, against torch.profiler's own."""

from __future__ import annotations

from profrun.contract.schedule import Schedule


def test_steps_are_counted_as_torch_does() -> None:
    from torch.profiler import ProfilerAction, schedule

    ours = {
        "wait": {ProfilerAction.NONE},
        "outside": {ProfilerAction.NONE},
        "warmup": {ProfilerAction.WARMUP},
    }
    ours["active"] = {ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE}
    for wait, warmup, active, repeat, skip in ((1, 1, 3, 1, 0), (0, 1, 2, 2, 3), (2, 3, 1, 3, 1)):
        theirs = schedule(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip)
        mine = Schedule(wait, warmup, active, repeat, skip)
        for step in range(30):
            assert theirs(step) in ours[mine.part(step)], (mine, step)
            saved = theirs(step) == ProfilerAction.RECORD_AND_SAVE
            assert saved == (mine.part(step) == "active" and mine.ends_cycle(step))

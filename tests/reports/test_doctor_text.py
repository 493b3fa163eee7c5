"""What ``profrun doctor`` prints."""

from __future__ import annotations

import dataclasses

from profrun.doctor.advice import advise
from profrun.doctor.checks import check_machine
from profrun.reports.doctor_text import advice_parts, check_parts
from profrun.reports.terminal_layout import Style, lay_out
from tests.doctor.test_checks import GOOD, usable

NO_NSYS_HERE = dataclasses.replace(GOOD, preflight=usable("none", "torch", "ncu"))


def test_the_verdict_comes_first_in_80_columns() -> None:
    lines = lay_out(advice_parts(advise(NO_NSYS_HERE)), Style(80)).splitlines()
    assert lines[:7] == [
        "NVIDIA H200, NVIDIA H200, driver 570.86, Docker 28.2",
        "",
        "  profiler                  works",
        "  none      no profiler     here, in image profrun/cuda:latest",
        "  torch     torch.profiler  here, in image profrun/cuda:latest",
        "  nsys      Nsight Systems  in image profrun/cuda:latest",
        "  ncu       Nsight Compute  here, in image profrun/cuda:latest",
    ]
    assert lines[7].split(maxsplit=2)[2] == "no: it needs an AMD GPU"
    assert max(map(len, lines)) <= 80
    assert not any("nsys" in line for line in lines[8:])


def test_what_lacks_here_and_works_in_an_image_is_information() -> None:
    advice = advise(NO_NSYS_HERE)
    text = lay_out(check_parts(check_machine(NO_NSYS_HERE), advice), Style(80))
    assert "\ninfo: nsys: not there" in text
    assert "\nok: ncu: " in text

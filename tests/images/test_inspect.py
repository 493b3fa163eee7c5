"""What an image was found to hold."""

from __future__ import annotations

from profrun.images.inspect import Contents, ToolFound, TorchFound


def test_versions_of_what_is_there() -> None:
    contents = Contents(
        nvtx="0.2.11",
        torch=TorchFound("2.9.0"),
        tools={"nsys": ToolFound("/usr/bin/nsys", "2025.1"), "ncu": ToolFound("/ncu", problem="it hangs")},
        packages={"triton": "3.5.0"},
    )
    assert contents.versions == {"torch": "2.9.0", "triton": "3.5.0", "nsys": "2025.1", "nvtx": "0.2.11"}


def test_torch_is_known_by_its_own_version_file() -> None:
    contents = Contents(torch=TorchFound("2.9.0a0+nv"), packages={"torch": "2.9.0"})
    assert contents.version_of("torch") == "2.9.0a0+nv"
    assert Contents(packages={"torch": "2.9.0"}).version_of("torch") == "2.9.0"
    assert contents.version_of("triton") is None

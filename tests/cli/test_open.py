"""``profrun open``: a run's report, or a trace that Perfetto's page fetches."""

from __future__ import annotations

import http.client
import threading
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from profrun.cli import perfetto
from profrun.store.runs import Run
from tests.cli.running import Capture, call


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> None:
    """A free port instead of Perfetto's, so that tests may run at the same time."""
    monkeypatch.setattr(perfetto, "PORT", 0)


@pytest.fixture
def opened(addresses: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the browser was asked to open."""
    monkeypatch.setenv("BROWSER", "pretend")
    return addresses


def test_a_file_for_perfetto_is_made_once(trace: Path, capsys: Capture) -> None:
    first = call(capsys, "open", trace, "--json").json
    assert first["kind"] == "trace"
    assert "ui.perfetto.dev" in first["how"]
    made = Path(first["path"]).stat()
    assert first["bytes"] == made.st_size
    again = call(capsys, "open", trace, "--json").json
    assert again == first
    assert Path(first["path"]).stat().st_mtime_ns == made.st_mtime_ns


def test_perfetto_fetches_the_trace_and_the_command_ends(
    trace: Path, port: None, opened: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies: list[bytes] = []
    fetching: list[threading.Thread] = []

    def fetch(address: str) -> bool:
        """As Perfetto's page does it: fetch what stands after ``url=`` in its link."""
        place = urlsplit(address.partition("#!/?url=")[2])

        def get() -> None:
            client = http.client.HTTPConnection(place.netloc, timeout=60)
            client.request("GET", place.path, headers={"Origin": "https://ui.perfetto.dev"})
            bodies.append(client.getresponse().read())

        fetching.append(threading.Thread(target=get))
        fetching[0].start()
        return True

    monkeypatch.setattr(webbrowser, "open", fetch)
    done = call(capsys, "open", trace)
    assert (done.code, done.err) == (0, "")
    fetching[0].join()  # the command ends when all is sent, maybe before all is read
    path = trace.parent / "t.pftrace"
    assert bodies == [path.read_bytes()]
    first, link, permission, last = done.out.splitlines()
    assert first.startswith(f"{path} (")
    assert link.startswith("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:")
    assert link.endswith("/t.pftrace")
    assert "allow it" in permission
    assert last == "Perfetto has the trace."


def test_nobody_fetches_it_and_the_link_is_printed(
    trace: Path, port: None, opened: list[str], capsys: Capture
) -> None:
    done = call(capsys, "open", trace, "--no-browser", "--timeout", "0.1")
    assert (done.code, opened) == (69, [])
    assert "#!/?url=http://127.0.0.1:" in done.out
    assert "did not fetch the trace within 0.1 s" in done.err
    assert f"drop {trace.parent}/t.pftrace on https://ui.perfetto.dev" in done.err


def test_without_a_display_a_trace_is_not_served(
    trace: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("profrun.cli.browser.can_show", lambda: False)
    done = call(capsys, "open", trace)
    assert done.code == 0
    assert f":{trace.parent}/t.pftrace ." in done.out
    assert "drop the file there" in done.out


def test_a_run_is_its_report(run: Run, opened: list[str], capsys: Capture) -> None:
    """The run has not ended: its page is made now, and kept."""
    root = run.path.parent
    done = call(capsys, "open", "--runs", root)
    assert (done.code, done.out.startswith(str(run.report))) == (0, True)
    assert opened == [run.report.as_uri()]
    made = run.report.stat().st_mtime_ns
    assert call(capsys, "open", "last", "--no-browser", "--runs", root).code == 0
    assert (len(opened), run.report.stat().st_mtime_ns) == (1, made)
    document = call(capsys, "open", run.name, "--runs", root, "--json").json
    assert (document["kind"], document["path"], len(opened)) == ("report", str(run.report), 1)


def test_what_is_not_there_is_64(tmp_path: Path, capsys: Capture) -> None:
    assert call(capsys, "open", "nothing", "--runs", tmp_path).code == 64
    assert call(capsys, "open", tmp_path / "no.json", "--runs", tmp_path).code == 64

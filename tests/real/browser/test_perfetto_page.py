"""``profrun open TRACE`` in a real browser: a page of Perfetto's origin may fetch the trace, another may not.

The pages are made here and shown under the origins, because nothing is loaded from the net in a test.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profrun.cli.perfetto import ORIGIN, serving

pytestmark = pytest.mark.browser
FETCH = """async () => {
  try {
    const answer = await fetch(decodeURIComponent(location.hash.split("?url=")[1]));
    const bytes = new Uint8Array(await answer.arrayBuffer());
    return [answer.status, bytes.length, bytes.reduce((sum, byte) => sum + byte, 0)];
  } catch (error) {
    return String(error);
  }
}"""


@pytest.mark.parametrize("origin", [ORIGIN, "https://evil.example"])
def test_only_perfettos_page_gets_the_trace(chromium: Any, tmp_path: Path, origin: str) -> None:
    content = bytes(range(256)) * 1000
    (tmp_path / "t.pftrace").write_bytes(content)
    # Since version 142 Chromium asks the user before a public page may reach this machine. Here he says yes.
    page = chromium.new_context(permissions=["local-network-access"]).new_page()
    page.route(
        f"{origin}/**", lambda route: route.fulfill(body="<!doctype html><p>page", content_type="text/html")
    )
    with serving(tmp_path / "t.pftrace", "t.pftrace", port=0) as server:
        page.goto(server.link.replace(ORIGIN, origin))
        assert page.evaluate("location.origin") == origin
        answer = page.evaluate(FETCH)
        if origin == ORIGIN:
            assert answer == [200, len(content), sum(content)]
            assert server.wait(60)
        else:
            assert answer == "TypeError: Failed to fetch"
            assert not server.wait(0)
    page.context.close()

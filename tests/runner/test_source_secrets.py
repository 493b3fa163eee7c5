"""Source without its secrets: what is hidden, what stays readable, and that no line moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profrun.contract.redact import HIDDEN, Redactor
from profrun.runner.source_secrets import public_lines

SECRET = "hunter2-and-more"


@pytest.mark.parametrize(
    "line",
    [
        f'password = "{SECRET}"',
        f"api_key: str = '{SECRET}'",
        f'os.environ["WANDB_API_KEY"] = "{SECRET}"',
        f'os.environ.setdefault("WANDB_API_KEY", "{SECRET}")',
        f'config = {{"password": "{SECRET}"}}',
        f'login(key=make(password="{SECRET}"))',
        f'api_key = ("{SECRET}")',
        f'api_key = f"pre {{x}} {SECRET}"',
        f"api_key = f\"{{make('x')}} {SECRET}\"",
        f"# the password: {SECRET}",
        f'url = "https://me:{SECRET}@host/"',
        f'print("--api-key {SECRET}")',
        f"known = '{SECRET}'",
        f'def broken(:  password = "{SECRET}"',
    ],
)
def test_a_secret_is_hidden_wherever_it_is_written_down(line: str) -> None:
    values = (SECRET,) if line.startswith("known") else ()
    (shown,) = public_lines(line, Redactor(values))
    assert SECRET not in shown
    assert HIDDEN in shown


def test_a_number_is_one_where_the_name_says_it_beyond_doubt() -> None:
    assert public_lines("PIN_PASSWORD = 123456\nkey = 7", Redactor()) == [
        f"PIN_PASSWORD = {HIDDEN}",
        "key = 7",
    ]


def test_the_pieces_of_a_string_are_hidden_together() -> None:
    assert public_lines('token = "first half" "second half"\n', Redactor())[0] == (
        f'token = "{HIDDEN}" "{HIDDEN}"'
    )


@pytest.mark.parametrize(
    "line",
    [
        "key = self.k_proj(x)",
        "query, key, value = self.qkv(x).chunk(3, dim=-1)",
        'key = rearrange(key, "b n (h d) -> b h n d", h=8)',
        "token = tokens[i]",
        "out = attention(query, key=key, value=value)",
        'if key == "weight":',
        "session = open_session(name)",
        'state = {"weight": "bf16"}',
        "mask[key] = 0",
    ],
)
def test_names_and_expressions_are_no_secrets(line: str) -> None:
    body = f"{line}\n    pass" if line.startswith("if") else line
    assert public_lines(body, Redactor())[0] == line


def test_a_secret_of_several_lines_keeps_its_lines() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nabc\ndef\n-----END RSA PRIVATE KEY-----"
    text = f'a = 1\r\nb = """\r\n{key}\r\n"""\r\nc = f(a)\r\n'
    shown = public_lines(text, Redactor())
    assert shown == ["a = 1", 'b = """', HIDDEN, "", "", "", '"""', "c = f(a)", ""]


@given(st.text(alphabet="abk=:'\"\n\r\t #{}()[],f\\\x00\u00e9", max_size=60))
def test_any_text_keeps_its_lines(text: str) -> None:
    assert len(public_lines(text, Redactor())) == len(
        text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    )

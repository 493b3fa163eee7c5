"""Secrets: by the name of a variable, by their form, in URLs and arguments."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from profrun.contract import redact


def test_secrets_by_name_by_form_and_in_urls() -> None:
    environ = {
        "HF_TOKEN": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "MY_PASSWORD": "x",
        "NAMED": "x",
        "PWD": "/home/me",
        "TOKENIZERS_PARALLELISM": "false",
        "INDEX": "https://user:pw@host/simple",
        "PLAIN": "ghp_0123456789abcdef0123456789",
    }
    assert redact.Redactor().environment(environ, ["NAMED"]) == {
        "AWS_SECRET_ACCESS_KEY": "<redacted>",
        "HF_TOKEN": "<redacted>",
        "INDEX": "https://<redacted>@host/simple",
        "MY_PASSWORD": "<redacted>",
        "NAMED": "<redacted>",
        "PLAIN": "<redacted>",
        "PWD": "/home/me",
        "TOKENIZERS_PARALLELISM": "false",
    }
    argv = ["train", "--api-key", "k", "--token=t", "WANDB_API_KEY=w", "--lr", "1"]
    assert redact.Redactor().arguments(argv) == (
        "train",
        "--api-key",
        "<redacted>",
        "--token=<redacted>",
        "WANDB_API_KEY=<redacted>",
        "--lr",
        "1",
    )


@given(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.from_regex(r"[A-Za-z0-9]{6,20}", fullmatch=True))
def test_no_password_of_a_url_survives(user: str, password: str) -> None:
    cleaned = redact.text(f"see postgres://{user}:{password}@h/db and more")
    assert f":{password}@" not in cleaned
    assert cleaned.endswith("@h/db and more")


def test_a_mapping_of_yaml_stays_one_and_key_is_a_word_of_manifests() -> None:
    shown = redact.text("token_1-passphrase_1: {token: abcdEF1234, passphrase: abcdEF1234}")
    assert shown == "token_1-passphrase_1: {token: <redacted>, passphrase: <redacted>}"
    assert redact.text("key: nvidia.com/gpu") == "key: nvidia.com/gpu"
    assert redact.text("--key abcdEF1234 key=abcdEF1234") == "--key <redacted> key=<redacted>"


def test_where_secrets_stand_in_a_text() -> None:
    """Known values and forms are sure; what a name tells is a place of its own."""
    text = 'see https://me:pw123@host, a known one, key = "abcdEF1234"'
    sure = {text[start:end] for start, end in redact.Redactor(("a known one",)).sure_spans(text)}
    assert sure == {"me:pw123", "a known one"}
    assert [text[start:end] for start, end in redact.named_spans(text)] == ["abcdEF1234"]

"""Which names say secret."""

from __future__ import annotations

import pytest

from profrun.contract.secret_names import secret_name, sure_name


@pytest.mark.parametrize(
    "name",
    [
        *(
            "HF_TOKEN",
            "token",
            "apiKey",
            "WANDB_API_KEY",
            "--api-key",
            "MY_PASSWORD",
            "SSHPASS",
            "PGPASSWORD",
        ),
        *(
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "SESSION",
            "DSN",
            "private_key",
            "MYSQL_PWD",
            "db-pass",
        ),
        *("GITHUB_PAT", "COOKIE", "API_TOKENS", "AZURE_CLIENT_SECRET", "NETRC_CREDENTIALS"),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("tokens", "max_tokens", "tokenizer", "key_dim", "--key-dim", "pad_token", "PATH", "PWD", "OLDPWD"),
        *(
            "sort_key",
            "TOKENIZERS_PARALLELISM",
            "SSH_AUTH_SOCK",
            "author",
            "rank",
            "secrets",
            "monkey",
            "batch",
        ),
        *("image_pull_secrets", "XDG_SESSION_ID", "DESKTOP_SESSION", "n_heads", "KEYBOARD_LAYOUT", "bypass"),
    ],
)
def test_names_of_other_things(name: str) -> None:
    assert not secret_name(name)


def test_a_number_is_a_secret_only_under_a_sure_name() -> None:
    assert sure_name("PIN_PASSWORD")
    assert not sure_name("token")

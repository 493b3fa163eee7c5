"""One planted secret of each kind. Each is put together here, so that no scanner takes it for a real one."""

from __future__ import annotations

R = "Zq7Rk2Vw9Xn4Tb6Hy8Lm3Pd5Jc1Fs0Ga"
HEX = "0123456789abcdef" * 4

PLANTED = {
    "AWS access key id": "AKI" + "AZQ7RK2VW9XN4TB6H",
    "GitHub token": "gh" + f"p_{R}abcd",
    "GitHub fine-grained token": "github_" + f"pat_{R}",
    "GitLab token": "glp" + f"at-{R[:20]}",
    "Hugging Face token": "h" + f"f_{R}",
    "Anthropic key": "sk-a" + f"nt-api03-{R}",
    "OpenAI key": "sk-p" + f"roj-{R}",
    "Slack token": "xo" + f"xb-123456789012-{R}",
    "Slack app token": "xa" + f"pp-1-{R}",
    "Slack webhook": "https://hooks.sl" + f"ack.com/services/T0/B0/{R}",
    "Google API key": "AI" + f"za{R}abc",
    "Google OAuth token": "ya" + f"29.{R}",
    "Google OAuth secret": "GOC" + f"SPX-{R}",
    "JSON Web Token": "ey" + f"JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{R}",
    "npm token": "np" + f"m_{R}",
    "PyPI token": "py" + f"pi-AgEIcHlwaS5vcmc{R}",
    "Stripe key": "sk_" + f"live_{R}",
    "SendGrid key": "S" + f"G.{R[:22]}.{R}",
    "Twilio key": "S" + f"K{HEX[:32]}",
    "Docker Hub token": "dckr_" + f"pat_{R}",
    "Databricks token": "da" + f"pi{HEX[:32]}",
    "DigitalOcean token": "do" + f"p_v1_{HEX}",
    "HashiCorp Vault token": "hv" + f"s.{R}",
    "Linear key": "lin_" + f"api_{R}abcdefgh",
    "Groq key": "gs" + f"k_{R}abcd",
    "Replicate token": "r" + f"8_{R}abcd",
    "password in a URL": f"postgres://me:{R}@db/x",
    "password of a connection string": "Server=db;Pass" + f"word={R};User=me",
    "bearer token": "Bear" + f"er {R}",
    "basic credentials": "Bas" + f"ic {R}",
    "private key in JSON": '{"private_' + f'key": "{R}"}}',
    "private key (PEM)": "-----BEGIN RSA PRIV" + f"ATE KEY-----\\n{R}\\n-----END RSA PRIVATE KEY-----",
    "parameter of a URL": "https://h/x?api_" + f"key={R}",
}
"""Kind -> a text that holds one."""

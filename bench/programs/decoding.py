"""Text generation with transformers, batch 1.

Planted: nothing; one token per forward leaves the GPU idle (host-bound).
"""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
from transformers import LlamaConfig, LlamaForCausalLM

device = "cuda" if torch.cuda.is_available() else "cpu"
config = LlamaConfig(
    vocab_size=8192, hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16
)
model = LlamaForCausalLM(config).to(device, torch.bfloat16).eval()
prompt = torch.randint(10, 8000, (1, 64), device=device)
with torch.no_grad():
    for request in range(12):
        tokens = model.generate(prompt, max_new_tokens=12, do_sample=False, pad_token_id=0)
        print(request, tokens.shape)

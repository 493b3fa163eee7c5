"""``generate`` of a GPT-2 of six layers, from random weights; ``--compile`` compiles its forward."""

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--compile", action="store_true")
parser.add_argument("--steps", type=int, default=16)
args = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"
model = GPT2LMHeadModel(GPT2Config(n_layer=6)).to(device).eval()
if args.compile:
    model.forward = torch.compile(model.forward, dynamic=True)
tokens = torch.randint(0, 50000, (8, 64), device=device)
with torch.inference_mode():
    for _ in range(args.steps):
        model.generate(
            tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=16, do_sample=False, pad_token_id=0
        )

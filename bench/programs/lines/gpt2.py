"""GPT-2 of six layers, random weights, trained by the Trainer of transformers.

``--compile`` compiles it. With ``--fp32`` it is trained in fp32, the Trainer's default, else in bf16.
"""

import argparse
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--compile", action="store_true")
parser.add_argument("--fp32", action="store_true")
parser.add_argument("--steps", type=int, default=30)
args = parser.parse_args()
on_gpu = torch.cuda.is_available()
size = {"n_layer": 6, "n_head": 12, "n_embd": 768} if on_gpu else {"n_layer": 2, "n_head": 2, "n_embd": 64}
model = GPT2LMHeadModel(GPT2Config(vocab_size=50304, **size))


class Tokens(torch.utils.data.Dataset):
    """Random tokens."""

    def __len__(self):
        return 10_000

    def __getitem__(self, place):
        found = torch.randint(
            0, 50304, (512 if on_gpu else 32,), generator=torch.Generator().manual_seed(place)
        )
        return {"input_ids": found, "labels": found}


with tempfile.TemporaryDirectory() as folder:
    settings = TrainingArguments(
        folder,
        max_steps=args.steps,
        per_device_train_batch_size=8 if on_gpu else 2,
        bf16=on_gpu and not args.fp32,
        torch_compile=args.compile,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        use_cpu=not on_gpu,
    )
    Trainer(model=model, args=settings, train_dataset=Tokens()).train()

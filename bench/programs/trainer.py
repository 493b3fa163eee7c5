"""Fine-tuning a BERT classifier with transformers' Trainer.

Planted: logging every step reads the loss (.item).
"""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Sentences(torch.utils.data.Dataset):
    """Random token ids with random labels."""

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        ids = torch.randint(0, 8192, (128,))
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": index % 2}


def main():
    config = BertConfig(num_hidden_layers=6, hidden_size=512, num_attention_heads=8, vocab_size=8192)
    config.intermediate_size = 2048
    arguments = TrainingArguments(
        output_dir="/tmp/profrun-bert",
        max_steps=40,
        per_device_train_batch_size=32,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        bf16=torch.cuda.is_available(),
        dataloader_num_workers=2,
        disable_tqdm=True,
    )
    Trainer(BertForSequenceClassification(config), arguments, train_dataset=Sentences()).train()


main()

"""A voice directory in, the seconds of PyTorch's best f32 training step on its network out.

The batch is that of benches/training.rs, its batch normalisation on the voice's own statistics, as ours. Random weights
take as long as trained ones. Never measures quality.
"""

import argparse
import math
import time

import torch
from transformers import SpeechT5Config, SpeechT5ForTextToSpeech

ROWS, FRAMES, TOKENS, STEPS = 4, 200, 60, 3


def batch(config):
    ids = [[4 + (at * 7 + row) % 20 for at in range(TOKENS)] for row in range(ROWS)]
    frames = FRAMES // config.reduction_factor * config.reduction_factor
    wave = [[math.sin((at * 13 + row) * 0.01) for at in range(frames * config.num_mel_bins)] for row in range(ROWS)]
    return {
        "input_ids": torch.tensor(ids),
        "attention_mask": torch.ones(ROWS, TOKENS, dtype=torch.long),
        "labels": torch.tensor(wave).reshape(ROWS, frames, config.num_mel_bins),
        "speaker_embeddings": torch.full((ROWS, config.speaker_embedding_dim), 0.1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--voice", required=True)
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    config = SpeechT5Config.from_pretrained(arguments.voice)
    model = SpeechT5ForTextToSpeech(config).train()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    inputs = batch(config)
    best = math.inf
    for _ in range(STEPS):
        began = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        model(**inputs).loss.backward()
        optimizer.step()
        best = min(best, time.perf_counter() - began)
    print(f"{best:.3f}")


if __name__ == "__main__":
    main()

"""A voice directory and the mel that benches/teacher_forced.rs made of it in, how far transformers is from it out.

Both run on the voice's weights in f32 without dropout; the prenet's, which transformers leaves on, is switched off here.
"""

import argparse
import sys

import torch
from safetensors.torch import load_file
from transformers import SpeechT5ForTextToSpeech

BOUND = 1e-3
PADDING = -100.0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--voice", required=True)
    parser.add_argument("--ours", required=True)
    arguments = parser.parse_args()
    ours = load_file(arguments.ours)
    model, loaded = SpeechT5ForTextToSpeech.from_pretrained(
        arguments.voice, dtype=torch.float32, output_loading_info=True
    )
    # Counters of batches that trained the statistics; nothing is computed with them.
    missing = [key for key in loaded["missing_keys"] if not key.endswith("num_batches_tracked")]
    if missing or loaded["unexpected_keys"] or loaded["mismatched_keys"]:
        sys.exit(f"the weights do not fit: {loaded}")
    model.eval()
    model.speecht5.decoder.prenet._consistent_dropout = lambda inputs, p: inputs
    mel = ours.pop("mel")
    with torch.no_grad():
        theirs = model(**ours).spectrogram
    spoken = ours["labels"] != PADDING
    difference = (theirs - mel).abs()[spoken].max().item()
    largest = mel[spoken].abs().max().item()
    print(f"largest difference {difference:.1e} of {BOUND:.0e} in {int(spoken.sum())} values up to {largest:.1f}")
    if not difference <= BOUND:
        sys.exit(1)


if __name__ == "__main__":
    main()

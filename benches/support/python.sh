# Sets `python` to an interpreter that has torch and transformers: $PYTHON, or one of a virtual environment that is made
# in target/python at the first use. pip's own settings (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL) say where from: an index of
# CPU builds spares a large download.
python=${PYTHON:-target/python/bin/python}
if [ -z "${PYTHON:-}" ] && ! "$python" -c 'import torch, transformers, safetensors' 2>/dev/null; then
    python3 -m venv target/python
    target/python/bin/pip install --quiet 'torch==2.15.*' 'transformers==5.24.*' safetensors numpy
fi

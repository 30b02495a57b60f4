#!/usr/bin/env bash
# Measures which tokens of the fixture rows TRL trains on with its default settings, and
# writes them to sinks/views/testdata/trl. The chat templates come with TRL, and
# trainers.py trains a small tokenizer, so only pip needs the network. It installs the
# packages of trainers.txt (5 GB) into out/tools/trainers.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/out/tools/trainers
if ! cmp -s scripts/trainers.txt "$venv/ready"; then
  python=$(command -v python3)
  "$python" -c 'import venv, ensurepip' 2>/dev/null || EXTRA=python3-venv EXTRA_TOOLS=python3-venv scripts/install-deps.sh
  rm -rf "$venv"
  "$python" -m venv "$venv"
  scripts/retry.sh "$venv/bin/pip" install -q --retries 10 -r scripts/trainers.txt
  cp scripts/trainers.txt "$venv/ready"
fi
go test ./sinks/views -count=1 -run '^TestTRLRows$' -update
HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 HF_HOME=$PWD/out/trainers TRANSFORMERS_VERBOSITY=error PYTHONWARNINGS=ignore CUDA_VISIBLE_DEVICES='' \
  "$venv/bin/python" scripts/trainers.py

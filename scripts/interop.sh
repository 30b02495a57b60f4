#!/usr/bin/env bash
# Loads a small published dataset, and every view of it, with what its readers use:
# pyarrow, pandas, polars, duckdb, datasets; has croissant.json checked and read by
# mlcroissant; runs the snippets of the card; renders the TRL view with the chat
# templates of two model families that ship in the package trl. Packages, of the
# versions in interop.txt, go to out/tools/interop; all that came along stands in
# out/interop/versions.txt.
#
# usage: interop.sh TRACESMITH
set -euo pipefail
cd "$(dirname "$0")/.."
tracesmith=$1
venv=$PWD/out/tools/interop work=$PWD/out/interop
if [ ! -e "$venv/ready-mlcroissant" ]; then # an environment without its last package is made anew
  python=$(command -v python3)
  "$python" -c 'import venv, ensurepip' 2>/dev/null || EXTRA=python3-venv EXTRA_TOOLS=python3-venv scripts/install-deps.sh # no such tool: it is missing
  "$python" -c 'import venv, ensurepip' 2>/dev/null || { echo "interop needs a python3 with venv (Debian: python3-venv)" >&2; exit 2; }
  rm -rf "$venv"
  "$python" -m venv "$venv"
  scripts/again.sh "$venv/bin/pip" install -q --retries 10 -r scripts/interop.txt
  scripts/again.sh "$venv/bin/pip" install -q --retries 10 --no-deps trl==1.16.0 # its templates; the rest of it would bring a tensor library
  touch "$venv/ready-mlcroissant"
fi
rm -rf "$work"
mkdir -p "$work"
"$venv/bin/pip" list --format freeze >"$work/versions.txt"
grep -iE '^(pyarrow|pandas|polars|duckdb|datasets|transformers|jinja2|trl|atif|mlcroissant)=' "$work/versions.txt" | tr '\n' ' '
echo

cd "$work"
"$tracesmith" run -c quickstart -p 'tasks.ids=[stockroom,agenda]' --run-dir run -p publish.to=data >run.log
for view in $("$tracesmith" export --help | sed -nE 's/^  ([a-z-]+)  +.*/\1/p'); do
  case $view in
  pref-pairs | sft-negative-pi) continue ;; # they need failures
  atif | hf-sts | debug-gym-json) out=$view ;;
  sft-text | sft-verl) out=$view.parquet ;;
  *) out=$view.jsonl ;;
  esac
  "$tracesmith" export "$view" data --all --allow-gold -o "$out" >>export.log
done
for view in sft-trl sft-axolotl sft-sharegpt step-labels infoseek-locate infoseek-context-patch infoseek-masked; do
  "$tracesmith" export "$view" data --all --allow-gold -o "$view.parquet" >>export.log
done
"$tracesmith" export sft-trl data --all --allow-gold -o sft-trl.jsonl.gz >>export.log
HF_HOME=$work/hf HF_DATASETS_OFFLINE=1 HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error PYTHONWARNINGS=ignore "$venv/bin/python" ../../scripts/interop.py

#!/usr/bin/env bash
# Checks a small published dataset and all its views with the libraries that users read it with:
#   - loads them with pyarrow, pandas, polars, duckdb and datasets, and compares each call
#     and each answer with the steps table;
#   - validates and reads croissant.json with mlcroissant;
#   - runs the snippets of the dataset card and of docs/python.md;
#   - renders the TRL view with the chat templates of two model families, which ship with
#     the package trl.
# It installs the packages of interop.txt into out/tools/interop, and lists all installed
# versions in out/interop/versions.txt.
#
# usage: interop.sh TRACESMITH
set -euo pipefail
cd "$(dirname "$0")/.."
tracesmith=$1
venv=$PWD/out/tools/interop work=$PWD/out/interop
if [ ! -e "$venv/ready-matplotlib" ]; then # recreate an environment that lacks the package that was added last
  python=$(command -v python3)
  "$python" -c 'import venv, ensurepip' 2>/dev/null || EXTRA=python3-venv EXTRA_TOOLS=python3-venv scripts/install-deps.sh # venv is not a command; EXTRA_TOOLS makes the script install the package
  "$python" -c 'import venv, ensurepip' 2>/dev/null || { echo "interop needs a python3 with venv (Debian: python3-venv)" >&2; exit 2; }
  rm -rf "$venv"
  "$python" -m venv "$venv"
  scripts/retry.sh "$venv/bin/pip" install -q --no-compile --retries 10 -r scripts/interop.txt
  scripts/retry.sh "$venv/bin/pip" install -q --no-compile --retries 10 --no-deps trl==1.16.0 # only for its chat templates; its dependencies include a tensor library
  touch "$venv/ready-matplotlib"
fi
rm -rf "$work"
mkdir -p "$work"
"$venv/bin/pip" list --format freeze >"$work/versions.txt"
grep -iE '^(pyarrow|pandas|polars|duckdb|datasets|transformers|jinja2|trl|atif|mlcroissant)=' "$work/versions.txt" | tr '\n' ' '
echo

# attempt SCRIPT N continues run "attempts" up to its attempt number N, with the scripted
# model of SCRIPT.yaml.
attempt() {
  "$tracesmith" mock "$1.yaml" --listen 127.0.0.1:0 >"$1.address" &
  local server=$!
  trap "kill $server" EXIT
  until [ -s "$1.address" ]; do kill -0 $server || exit 1; sleep 0.1; done
  OPENAI_API_KEY=any "$tracesmith" run -c openai --run-dir attempts -p llm.model=m -p 'tasks.ids=[stockroom]' -p "run.attempts=$2" -p publish.to= -p "llm.base_url=$(cat "$1.address")"
  kill $server
  wait $server || true
  trap - EXIT
}

# attempts makes one passing and one failing episode of a task with a scripted model. They
# have features that readers can get wrong: parallel calls, a reply without a call,
# arguments that are not JSON, empty texts, reasoning, non-ASCII text. It also annotates
# the failing episode.
attempts() {
  cat >pass.yaml <<'EOF'
sessions:
  - model: m
    turns:
      - content: Zwei auf einmal — żółć 日本 🐛
        reasoning: "Ich denke: <b>&</b> \u2028"
        tool_calls:
          - {name: view, arguments: {path: stockroom/store.py}}
          - {name: grep, arguments: {pattern: "return dict", path: stockroom}}
      - {content: No call here., reasoning: nur so}
      - tool_calls: [{name: bash, raw: '{"command": "echo hi"'}]
      - tool_calls: [{name: bash, arguments: {command: "printf ''"}}]
      - tool_calls: [{name: bash, raw: '{"command": "printf \"\\u00e9 </tool_call> <|im_end|>\"", "timeout": 5.0}'}]
      - content: This was it.
        tool_calls:
          - name: edit
            arguments: {path: stockroom/store.py, old_code: return dict(self._levels), new_code: "return {article: dict(shelves) for article, shelves in self._levels.items()}"}
          - {name: eval}
      - tool_calls: [{name: submit}]
EOF
  cat >fail.yaml <<'EOF'
sessions:
  - model: m
    turns:
      - {content: I look., tool_calls: [{name: view, arguments: {path: stockroom/store.py}}]}
      - tool_calls: [{name: submit}]
EOF
  attempt pass 1
  attempt fail 2
  local fail
  fail=$("$tracesmith" show attempts --json | "$venv/bin/python" -c 'import json, sys; print(*[e["episode_id"] for e in json.load(sys.stdin)["episodes"] if not e["resolved"]])')
  printf '{"annotation_id":"1","episode_id":"%s","kind":"fact","label":"wrong","text":"The levels are copied.","uses_gold":false,"annotator":"interop","created_at":"2026-01-01T00:00:00Z"}\n{"annotation_id":"2","episode_id":"%s","kind":"fact","label":"true","text":"The report compares two counts.","uses_gold":false,"annotator":"interop","created_at":"2026-01-01T00:00:00Z"}\n' "$fail" "$fail" >attempts/annotations.jsonl
}

# lost makes a run whose only job has no episode, because every answer of the model server is an error.
lost() {
  printf 'sessions:\n  - model: m\n    turns:\n      - fault: {kind: server_error}\n' >lost.yaml
  "$tracesmith" mock lost.yaml --listen 127.0.0.1:0 >lost.address &
  local server=$! status=0
  trap "kill $server" EXIT
  until [ -s lost.address ]; do kill -0 $server || exit 1; sleep 0.1; done
  OPENAI_API_KEY=any "$tracesmith" run -c openai --run-dir lost -p llm.model=m -p llm.max_retries=0 -p 'tasks.ids=[agenda]' -p run.attempts=1 -p publish.to= -p "llm.base_url=$(cat lost.address)" || status=$?
  [ $status = 3 ] || { echo "a run without an episode ended with $status" >&2; exit 1; }
  kill $server
  wait $server || true
  trap - EXIT
}

cd "$work"
"$tracesmith" run -c quickstart -p 'tasks.ids=[stockroom,agenda]' --run-dir run -p publish.to= >run.log
attempts >>run.log
lost >>run.log
"$tracesmith" publish run attempts lost --to data >>run.log
"$tracesmith" publish attempts --to grown >>run.log
cp -r grown grown-1
"$tracesmith" publish run --to grown >>run.log
cp -r grown grown-2
"$tracesmith" publish run attempts --to grown >>run.log
mv grown grown-3
for view in $("$tracesmith" export --help | sed -nE 's/^  ([a-z-]+)  +.*/\1/p'); do
  case $view in
  atif | hf-sts | debug-gym-json) out=$view ;;
  sft-text | sft-verl) out=$view.parquet ;;
  *) out=$view.jsonl ;;
  esac
  case $view in # export whole conversations, which these views split by default
  sft-text | sft-verl | sft-sharegpt | debug-gym-sft) mask=(--mask none) ;;
  *) mask=() ;;
  esac
  "$tracesmith" export "$view" data --all --split all --allow-gold "${mask[@]}" -o "$out" >>export.log
done
for view in sft-trl sft-axolotl step-labels infoseek-locate infoseek-context-patch infoseek-masked; do
  "$tracesmith" export "$view" data --all --split all --allow-gold -o "$view.parquet" >>export.log
done
"$tracesmith" export sft-sharegpt data --all --split all --allow-gold --mask none -o sft-sharegpt.parquet >>export.log
"$tracesmith" export sft-trl data --all --split all --allow-gold -o sft-trl.jsonl.gz >>export.log
TRACESMITH=$tracesmith HF_HOME=$work/hf HF_DATASETS_OFFLINE=1 HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error PYTHONWARNINGS=ignore "$venv/bin/python" ../../scripts/interop.py
"$tracesmith" publish run --to out/quickstart/dataset >>run.log
PATH=$(dirname "$tracesmith"):$PATH HF_HOME=$work/hf HF_DATASETS_OFFLINE=1 MPLBACKEND=Agg "$venv/bin/python" - ../../docs/python.md <<'EOF'
import re, sys
page = open(sys.argv[1]).read()
exec(compile("\n".join(re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)), sys.argv[1], "exec"))
EOF

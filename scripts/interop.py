"""Reads a dataset and its views with other libraries and compares the results with the manifest.

interop.sh runs it in the directory that holds data/ and the exports.
"""
import glob
import gzip
import json
import os
import sys

import duckdb
import datasets
import pandas
import polars
import pyarrow.parquet as pq

datasets.disable_progress_bars()
checks = 0


def check(ok, message):
    global checks
    checks += 1
    if not ok:
        sys.exit("interop: " + message)


def type_name(kind):
    """Returns a name for a type that is the same for all libraries."""
    kind = str(kind).lower()
    for name, words in {
        "list": ("list", "[]"),
        "time": ("timestamp", "datetime"),
        "bool": ("bool",),
        "float": ("float", "double"),
        "int": ("int",),
        "text": ("string", "varchar", "utf8", "str"),
    }.items():
        if any(w in kind for w in words):
            return name
    return kind


base = "data"  # the directory that was published to
manifest = json.load(open("data/manifest.json"))
check(manifest["version"] == json.load(open("data/latest.json"))["version"], "the root does not hold the latest version")
tables = {}
for entry in manifest["files"]:
    path = os.path.join(base, entry["path"])
    check(os.path.getsize(path) == entry["bytes"], f"{path}: its size differs from the manifest")
    if not path.endswith(".parquet"):
        continue
    arrow = pq.read_table(path)
    rows = entry["rows"]
    check(arrow.num_rows == rows, f"{path}: pyarrow sees {arrow.num_rows} rows, the manifest {rows}")
    frame = polars.read_parquet(path)
    check(frame.height == rows, f"{path}: polars sees {frame.height} rows, not {rows}")
    check(len(pandas.read_parquet(path)) == rows, f"{path}: pandas does not see {rows} rows")
    sql = duckdb.sql(f"select * from read_parquet('{path}')")
    check(len(sql) == rows, f"{path}: duckdb sees {len(sql)} rows, not {rows}")
    hub = datasets.load_dataset("parquet", data_files=path, split="train", cache_dir="hf/cache")
    check(hub.num_rows == rows, f"{path}: datasets sees {hub.num_rows} rows, not {rows}")
    duckdb_types = dict(zip(sql.columns, sql.types))
    for field in arrow.schema:
        kind = type_name(field.type)
        seen = {"polars": type_name(frame.schema[field.name]), "duckdb": type_name(duckdb_types[field.name]), "datasets": type_name(hub.features.arrow_schema.field(field.name).type)}
        check(all(v == kind for v in seen.values()), f"{path}: column {field.name} is a {field.type} for pyarrow, and {seen}")
    arrow_rows, polars_rows, duckdb_rows = arrow.to_pylist(), frame.to_dicts(), sql.fetchall()
    for i in range(min(rows, 50)):
        for j, name in enumerate(sql.columns):
            want = arrow_rows[i][name]
            if type_name(arrow.schema.field(name).type) == "time":
                continue  # libraries return times as different types
            check(polars_rows[i][name] == want, f"{path}: row {i}, {name}: polars {polars_rows[i][name]!r}, pyarrow {want!r}")
            check(duckdb_rows[i][j] == want, f"{path}: row {i}, {name}: duckdb {duckdb_rows[i][j]!r}, pyarrow {want!r}")
            check(hub[i][name] == want, f"{path}: row {i}, {name}: datasets {hub[i][name]!r}, pyarrow {want!r}")
    tables.setdefault(entry["table"], []).extend(arrow_rows)
check(set(tables) == {"episodes", "steps", "blobs", "tool_sets", "annotations", "selection", "dead_letters"}, f"the tables are {sorted(tables)}")
print(f"tables: {', '.join(f'{name} {len(rows)}' for name, rows in tables.items())}; {checks} checks")

before = checks
for place in ("grown-1", "grown-2", "grown-3"):  # a dataset after each of its three versions
    files = [f for f in json.load(open(place + "/manifest.json"))["files"] if f["path"].endswith(".parquet")]
    count = {table: sum(f["rows"] for f in files if f["table"] == table) for table in ("episodes", "steps")}
    loaded = datasets.load_dataset(place, cache_dir="hf/cache")
    check(sum(part.num_rows for part in loaded.values()) == count["episodes"], f"{place}: load_dataset sees {loaded}, not {count}")
    loaded = datasets.load_dataset(place, "steps", streaming=True, cache_dir="hf/cache")
    check(sum(1 for part in loaded.values() for _ in part) == count["steps"], f"{place}: load_dataset streams other steps")
    for table, rows in count.items():
        folder = f"{place}/data/{table}"
        check(len(pandas.read_parquet(folder)) == rows, f"{folder}: pandas does not see {rows} rows")
        check(polars.read_parquet(folder).height == rows, f"{folder}: polars does not see {rows} rows")
        check(len(duckdb.sql(f"from read_parquet('{folder}')")) == rows, f"{folder}: duckdb does not see {rows} rows")
        for pattern in (f"{folder}/*.parquet", f"{place}/*/{table}/*.parquet", f"{place}/**/{table}/*.parquet", f"{place}/**/data/{table}/*.parquet"):
            seen = duckdb.sql(f"select count(*), count(distinct episode_id) from '{pattern}'").fetchall()[0]
            check(seen == (rows, count["episodes"]), f"{pattern}: duckdb counts {seen}, not {rows} rows of {count['episodes']} episodes")
            check(polars.read_parquet(pattern).height == rows, f"{pattern}: polars does not see {rows} rows")
            check(len(pandas.concat(map(pandas.read_parquet, glob.glob(pattern, recursive=True)))) == rows, f"{pattern}: pandas does not see {rows} rows")
            check(datasets.load_dataset("parquet", data_files=pattern, split="train", cache_dir="hf/cache").num_rows == rows, f"{pattern}: datasets does not see {rows} rows")
    names = duckdb.sql(f"select count(*) from glob('{place}/**/*.parquet')").fetchall()[0][0]
    check(names == len(files), f"{place}: {names} Parquet files, the latest version has {len(files)}")
print(f"three versions in one place; {checks - before} checks")

before = checks
import logging
import re
import subprocess

import yaml

logging.disable(logging.WARNING)
import mlcroissant

described = mlcroissant.Dataset(jsonld=os.path.join(base, "croissant.json"))  # raises an error if it is not valid
for records in described.metadata.record_sets:
    rows = list(described.records(records.name))
    check(len(rows) == len(tables[records.name]), f"croissant.json: {len(rows)} records in {records.name}, {len(tables[records.name])} rows in its files")
    check({k.split("/")[1] for k in rows[0]} == set(tables[records.name][0]), f"croissant.json: {records.name} has other columns than its files")
logging.disable(logging.NOTSET)

card = open(os.path.join(base, "README.md")).read().replace("DIR", os.path.abspath(base))
snippets = re.findall(r"```(python|sql|sh|yaml)\n(.*?)```", card, re.S)
check([s[0] for s in snippets] == ["python"] * 3 + ["sql", "sh", "python", "yaml", "sh"], f"the card has the snippets {[s[0] for s in snippets]}")
os.makedirs("card")
os.chdir("card")  # not beside the exports below, because these commands do not export all episodes
for language, code in snippets:
    names = {}
    if language == "sh":
        if "RUN..." in code:
            code = code.replace("RUN...", "../run ../attempts ../lost").replace("DATASET", "made-again")
        done = subprocess.run(["sh", "-ec", 'tracesmith() { "$TRACESMITH" "$@"; }\n' + code], capture_output=True, text=True)
        check(done.returncode == 0, f"the card's commands fail: {code}{done.stderr}")
        if "made-again" in code:
            again = json.load(open("made-again/latest.json"))
            check(again["version"] == manifest["version"], f"the card's command makes version {again['version']}, not {manifest['version']}")
        continue
    if language == "yaml":
        row, entry = json.loads(open("axolotl.jsonl").readline()), yaml.safe_load(code)["datasets"][0]
        check(entry["path"] == "axolotl.jsonl" and entry["field_tools"] in row, f"the card's entry {entry} names fields that the file does not have")
        check(all(entry["message_field_training"] in m for m in row[entry["field_messages"]] if m["role"] == "assistant"), f"the card's entry {entry} names a field that replies lack")
        continue
    if language == "sql":
        names["found"] = duckdb.sql(code).fetchall()
        kept = {s["episode_id"] for s in tables["selection"] if s["kept"]}
        check(sum(row[2] for row in names["found"]) == len(kept), f"the card's query counts {names['found']}, {len(kept)} are kept")
        continue
    exec(code, names)
    if "trl.jsonl.gz" in code:
        check(names["train"].num_rows > 0, "the card's snippet for TRL loads nothing")
    elif "load_dataset" in code:
        check(sum(part.num_rows for part in names["episodes"].values()) == len(tables["episodes"]), "the card's datasets snippet loads other rows")
    elif "pd." in code:
        check(len(names["episodes"]) == len(tables["episodes"]), "the card's pandas snippet loads other rows")
    else:
        wanted = [s for s in tables["steps"] if s["tool_category"] == "pdb"]
        check(names["steps"].height == len(wanted) > 0, "the card's polars snippet finds other steps")
os.chdir("..")
print(f"croissant.json: {', '.join(r.name for r in described.metadata.record_sets)}; {len(snippets)} snippets of the card; {checks - before} checks")

# Maps each episode to its calls in order, as (tool, arguments, answer), from the table of steps.
truth = {}
for s in sorted(tables["steps"], key=lambda s: (s["episode_id"], s["step_index"])):
    if s["tool_name"] is None:
        continue
    answer = s["observation"]
    for more in json.loads(s["triggered_json"] or "[]"):
        answer += "\n\n" + more["text"] if more["text"] else ""
    truth.setdefault(s["episode_id"], []).append((s["tool_name"], json.loads(s["arguments_json"]), answer))


def parsed(arguments):
    return json.loads(arguments) if isinstance(arguments, str) else arguments


def chat(messages):
    """Returns the calls of a list of messages, each with its answer, or None if the list does not contain it."""
    out, at = [], {}
    for m in messages:
        if m["role"] == "assistant":
            at = {}
            for c in m.get("tool_calls") or m.get("toolCalls") or []:
                at[c["id"]] = len(out)
                out.append((c["function"]["name"], parsed(c["function"]["arguments"]), None))
        elif m["role"] == "tool":
            i = at.pop(m.get("tool_call_id") or m["toolCallId"])
            out[i] = (*out[i][:2], m["content"])
    return out


def sharegpt(row):
    said, out = row["conversations"], []
    for i, c in enumerate(said):
        if c["from"] == "function_call":
            call = json.loads(re.sub(r"(?s)^<think>\n(.*?)\n</think>\n\n", "", c["value"], count=1))  # as LLaMA-Factory does
            out.append((call["name"], call["arguments"], said[i + 1]["value"] if i + 1 < len(said) else None))
    return out


def adp(row):
    items = row["content"]
    answers = {i["tool_call_id"]: i["content"] for i in items if i["class_"] == "text_observation" and "tool_call_id" in i}
    return [(i["function"], i["kwargs"], answers[i["tool_call_id"]]) for i in items if i["class_"] == "api_action"]


def atif(row):
    out = []
    for s in row["steps"]:
        answers = {r.get("source_call_id"): r["content"] for r in s.get("observation", {}).get("results", [])}
        out += [(c["function_name"], c["arguments"], answers.get(c["tool_call_id"])) for c in s.get("tool_calls", [])]
    return out


def gym(row):
    steps = [s for s in row["log"] if s["action"] and s["action"]["name"] != "empty_tool_response"]
    return [(s["action"]["name"], s["action"]["arguments"], s["obs"]) for s in steps]


def chatml(row):
    """Returns the calls of a text without answers, and checks that the text contains all answers but the last."""
    text = row.get("text") or "".join(m["content"] + "\n" for m in row["messages"][1:])
    found = re.findall(r'(?s)<tool_call>\n(\{"name":".*?\})\n</tool_call>', text)
    out = [(c["name"], c["arguments"], None) for c in map(json.loads, found)]
    for calls in truth.values():
        if [c[:2] for c in calls] == [c[:2] for c in out]:
            check(all(c[2] in text for c in calls[:-1]), f"an answer is not in a text of {len(text)} characters")
    return out


def is_prefix(mine, calls):
    """Whether mine are the first calls of an episode; an answer may be missing (None)."""
    return len(mine) <= len(calls) and all(m[:2] == c[:2] and m[2] in (None, c[2]) for m, c in zip(mine, calls))


def compare(path, mine, episode, complete):
    """Checks that a row's calls are the first of its episode, and adds the episode to complete if the row has them all."""
    ids = [episode] if episode else [e for e, calls in truth.items() if is_prefix(mine, calls)]
    check(any(is_prefix(mine, truth[e]) for e in ids), f"{path}: calls or answers of {episode or 'a row'} differ from the table of steps")
    for e in ids:
        if len(mine) == len(truth[e]):
            complete.add(e)


# Maps each view to the function that returns the calls of a row. The views in PARTS contain only parts of an episode.
READERS = {
    "sft-trl": lambda r: chat(r["prompt"] + r["completion"]), "sft-negative-pi": lambda r: chat(r["prompt"] + r["completion"]),
    "infoseek-next-action": lambda r: chat(r["prompt"] + r["completion"]),
    "sft-axolotl": lambda r: chat(r["messages"]), "infoseek-masked": lambda r: chat(r["messages"]),
    "sft-openai": lambda r: chat(r["messages"]), "debug-gym-sft": lambda r: chat(r["messages"]),
    "sft-sharegpt": sharegpt, "adp": adp, "atif": atif, "debug-gym-json": gym, "sft-text": chatml, "sft-verl": chatml,
    "hf-sts": lambda r: chat([line["message"] for line in r[1:]]),
}
PARTS = ("infoseek-next-action", "infoseek-masked", "sft-negative-pi")
OTHERS = ("step-labels", "pref-pairs", "infoseek-context-patch", "infoseek-locate")

before = checks
views, seen = [], set()
for report in sorted(glob.glob("*.lint.json")):
    lint, path = json.load(open(report)), report.removesuffix(".lint.json")
    view, rows = lint["view"], lint["rows"]
    views.append(path)
    seen.add(view)
    check(lint["schema"] == "tracesmith.lint/1" and rows > 0, f"{path}: lint report {lint}")
    check(lint["episodes_selected"] == lint["episodes_exported"] + lint["dropped"].get("episodes_without_rows", 0), f"{path}: lint report {lint}")
    if os.path.isdir(path):
        files = [f for f in glob.glob(path + "/**", recursive=True) if os.path.isfile(f)]
        check(len(files) == rows, f"{path}: {len(files)} files, the lint report says {rows}")
        plain = [[json.loads(line) for line in open(f)] if f.endswith(".jsonl") else json.load(open(f)) for f in files]
    elif path.endswith(".parquet"):
        table = pq.read_table(path)
        check(table.num_rows == len(pandas.read_parquet(path)) == polars.read_parquet(path).height == rows, f"{path}: not every library sees {rows} rows")
        check(duckdb.sql(f"select count(*) from '{path}'").fetchall()[0][0] == rows, f"{path}: duckdb does not see {rows} rows")
        loaded, plain = datasets.load_dataset("parquet", data_files=path, split="train", cache_dir="hf/cache"), table.to_pylist()
        check(loaded.to_list() == plain, f"{path}: datasets and pyarrow differ")
    else:
        plain = [json.loads(line) for line in (gzip.open(path, "rt") if path.endswith(".gz") else open(path))]
        check(len(plain) == rows, f"{path}: {len(plain)} lines, the lint report says {rows}")
        loaded = datasets.load_dataset("json", data_files=path, split="train", cache_dir="hf/cache")
        check(loaded.num_rows == rows, f"{path}: datasets sees {loaded.num_rows} rows, not {rows}")
    check(view in READERS or view in OTHERS, f"{path}: this script has no reader for the view {view}")
    complete = set()
    for row in plain:
        if view in READERS:
            compare(path, READERS[view](row), row.get("episode_id") if isinstance(row, dict) else None, complete)
        if view == "pref-pairs":
            for side in ("chosen", "rejected"):
                compare(path, chat(row[side]), row[side + "_episode_id"], complete)
        if view == "sft-negative-pi":
            check("<information>" in json.dumps(row["prompt"]) and row["resolved"] is False, f"{path}: a row does not say what is wrong")
    if view in READERS and view not in PARTS:
        check(complete == set(truth), f"{path}: {len(complete)} of {len(truth)} episodes are in it with all their calls")
check(seen == set(READERS) | set(OTHERS), f"exported: {seen}")
print(f"views: {', '.join(views)}; {checks - before} checks")

before = checks
import trl
from transformers.utils.chat_template_utils import render_jinja_template

folder = os.path.join(os.path.dirname(trl.__file__), "chat_templates")
loaded = datasets.load_dataset("json", data_files="sft-trl.jsonl.gz", split="train", cache_dir="hf/cache")
for family in ("qwen3", "llama3_1"):
    template = open(os.path.join(folder, family + ".jinja")).read()
    for row in loaded:
        messages = row["prompt"] + row["completion"]
        if family.startswith("llama"):  # its template allows one call per message
            messages = [m for m in messages if len(m.get("tool_calls") or []) <= 1]
        out = render_jinja_template(conversations=[messages], tools=row["tools"], chat_template=template, bos_token="", **row.get("chat_template_kwargs", {}))
        text = out[0][0] if isinstance(out, tuple) else out[0]
        for m in messages:
            if m["role"] in ("user", "tool"):  # some templates write answers as JSON
                check(m["content"].strip() in text or json.dumps(m["content"], ensure_ascii=False) in text, f"{family}: {m['content'][:80]!r} is not in the text")
            for c in m.get("tool_calls") or []:
                check(c["function"]["name"] in text, f"{family}: a call of {c['function']['name']} is not in the text")
                for key, value in c["function"]["arguments"].items():
                    mine = [a for name, a, _ in truth[row["episode_id"]] if name == c["function"]["name"]]
                    check(value is not None or any(a.get(key, 0) is None for a in mine), f"{family}: argument {key} became null")
                    said = json.dumps(value, ensure_ascii=False)
                    check(said in text or json.dumps(value) in text or str(value) in text, f"{family}: argument {key}={said[:80]} is not in the text")
    print(f"template {family}: {len(text)} characters in the last of {len(loaded)} rows")
print(f"{checks} checks")

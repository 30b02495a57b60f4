"""Compares what other readers see of a dataset and its views with its manifest.

Run by interop.sh in the directory that holds data/ and the exports.
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


def check(ok, what):
    global checks
    checks += 1
    if not ok:
        sys.exit("interop: " + what)


def simple(kind):
    """A type's name that all readers share."""
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


root = json.load(open("data/latest.json"))["manifest"]
base = os.path.join("data", os.path.dirname(root))
manifest = json.load(open(os.path.join("data", root)))
tables = {}
for entry in manifest["files"]:
    path = os.path.join(base, entry["path"])
    check(os.path.getsize(path) == entry["bytes"], f"{path}: its size is not the manifest's")
    if not path.endswith(".parquet"):
        continue
    arrow = pq.read_table(path)
    rows = entry["rows"]
    check(arrow.num_rows == rows, f"{path}: pyarrow sees {arrow.num_rows} rows, the manifest {rows}")
    frame = polars.read_parquet(path)
    check(frame.height == rows, f"{path}: polars sees {frame.height} rows, not {rows}")
    check(len(pandas.read_parquet(path)) == rows, f"{path}: pandas sees other than {rows} rows")
    sql = duckdb.sql(f"select * from read_parquet('{path}')")
    check(len(sql) == rows, f"{path}: duckdb sees {len(sql)} rows, not {rows}")
    hub = datasets.load_dataset("parquet", data_files=path, split="train", cache_dir="hf/cache")
    check(hub.num_rows == rows, f"{path}: datasets sees {hub.num_rows} rows, not {rows}")
    ducks = dict(zip(sql.columns, sql.types))
    for field in arrow.schema:
        kind = simple(field.type)
        seen = {"polars": simple(frame.schema[field.name]), "duckdb": simple(ducks[field.name]), "datasets": simple(hub.features.arrow_schema.field(field.name).type)}
        check(all(v == kind for v in seen.values()), f"{path}: column {field.name} is a {field.type} for pyarrow, and {seen}")
    mine, theirs = arrow.to_pylist(), frame.to_dicts()
    ducked = sql.fetchall()
    for i in range(min(rows, 50)):
        for j, name in enumerate(sql.columns):
            want = mine[i][name]
            if simple(arrow.schema.field(name).type) == "time":
                continue  # a clock has many spellings
            check(theirs[i][name] == want, f"{path}: row {i}, {name}: polars {theirs[i][name]!r}, pyarrow {want!r}")
            check(ducked[i][j] == want, f"{path}: row {i}, {name}: duckdb {ducked[i][j]!r}, pyarrow {want!r}")
            check(hub[i][name] == want, f"{path}: row {i}, {name}: datasets {hub[i][name]!r}, pyarrow {want!r}")
    tables.setdefault(entry["table"], []).extend(mine)
print(f"tables: {', '.join(f'{name} {len(rows)}' for name, rows in tables.items())}; {checks} checks")

before = checks
import logging
import re

logging.disable(logging.WARNING)
import mlcroissant

described = mlcroissant.Dataset(jsonld=os.path.join(base, "croissant.json"))  # raises where it is not valid
for records in described.metadata.record_sets:
    rows = list(described.records(records.name))
    check(len(rows) == len(tables[records.name]), f"croissant.json: {len(rows)} records in {records.name}, {len(tables[records.name])} rows in its files")
    check({k.split("/")[1] for k in rows[0]} == set(tables[records.name][0]), f"croissant.json: {records.name} has other columns than its files")
logging.disable(logging.NOTSET)

card = open(os.path.join(base, "README.md")).read().replace("DIR", os.path.abspath(base))
snippets = re.findall(r"```(python|sql)\n(.*?)```", card, re.S)
check(len(snippets) == 4, f"the card has {len(snippets)} snippets")
for language, code in snippets:
    names = {}
    if language == "sql":
        names["found"] = duckdb.sql(code).fetchall()
        kept = {s["episode_id"] for s in tables["selection"] if s["kept"]}
        check(sum(row[2] for row in names["found"]) == len(kept), f"the card's query counts {names['found']}, {len(kept)} are kept")
        continue
    exec(code, names)
    if "load_dataset" in code:
        check(sum(part.num_rows for part in names["episodes"].values()) == len(tables["episodes"]), "the card's datasets snippet loads other rows")
    elif "pd." in code:
        check(len(names["episodes"]) == len(tables["episodes"]), "the card's pandas snippet loads other rows")
    else:
        wanted = [s for s in tables["steps"] if s["tool_category"] == "pdb"]
        check(names["steps"].height == len(wanted) > 0, "the card's polars snippet finds other steps")
print(f"croissant.json: {', '.join(r.name for r in described.metadata.record_sets)}; {len(snippets)} snippets of the card; {checks - before} checks")

calls = {(s["episode_id"], s["tool_call_id"]): (s["tool_name"], json.loads(s["arguments_json"])) for s in tables["steps"] if s["tool_name"]}


def same_calls(view, episode, messages):
    n = 0
    for m in messages:
        for c in m.get("tool_calls") or []:
            arguments = c["function"]["arguments"]
            if isinstance(arguments, str):
                arguments = json.loads(arguments)
            check(calls[episode, c["id"]] == (c["function"]["name"], arguments), f"{view}: call {c['id']} of {episode} differs from table steps")
            n += 1
    return n


before = checks
views = []
for report in sorted(glob.glob("*.lint.json")):
    lint, path = json.load(open(report)), report.removesuffix(".lint.json")
    view, rows = lint["view"], lint["rows"]
    views.append(path)
    check(lint["schema"] == "tracesmith.lint/1" and rows > 0, f"{path}: lint report {lint}")
    if os.path.isdir(path):
        files = [f for f in glob.glob(path + "/**", recursive=True) if os.path.isfile(f)]
        check(len(files) == rows, f"{path}: {len(files)} files, the lint report says {rows}")
        for f in files:
            for line in open(f) if f.endswith(".jsonl") else [open(f).read()]:
                json.loads(line)
        continue
    if path.endswith(".parquet"):
        table = pq.read_table(path)
        check(table.num_rows == len(pandas.read_parquet(path)) == polars.read_parquet(path).height == rows, f"{path}: not {rows} rows for everyone")
        check(duckdb.sql(f"select count(*) from '{path}'").fetchall()[0][0] == rows, f"{path}: duckdb sees other than {rows} rows")
        loaded, plain = datasets.load_dataset("parquet", data_files=path, split="train", cache_dir="hf/cache"), table.to_pylist()
        check(loaded.to_list() == plain, f"{path}: datasets and pyarrow differ")
    else:
        plain = [json.loads(line) for line in (gzip.open(path, "rt") if path.endswith(".gz") else open(path))]
        check(len(plain) == rows, f"{path}: {len(plain)} lines, the lint report says {rows}")
        loaded = datasets.load_dataset("json", data_files=path, split="train", cache_dir="hf/cache")
        check(loaded.num_rows == rows, f"{path}: datasets sees {loaded.num_rows} rows, not {rows}")
    found = 0
    for row in plain:
        if "episode_id" in row:
            for key in ("prompt", "completion", "messages"):
                if isinstance(row.get(key), list):
                    found += same_calls(path, row["episode_id"], row[key])
    if view in ("sft-trl", "sft-axolotl", "infoseek-masked"):
        check(found > 0, f"{path}: no call in it")
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
        if family.startswith("llama"):  # one call a message is all that it knows
            messages = [m for m in messages if len(m.get("tool_calls") or []) <= 1]
        out = render_jinja_template(conversations=[messages], tools=row["tools"], chat_template=template, bos_token="", **row["chat_template_kwargs"])
        text = out[0][0] if isinstance(out, tuple) else out[0]
        for m in messages:
            for c in m.get("tool_calls") or []:
                check(c["function"]["name"] in text, f"{family}: a call of {c['function']['name']} is not in the text")
                for key, value in c["function"]["arguments"].items():
                    check(value is not None or (calls[row["episode_id"], c["id"]][1].get(key, 0) is None), f"{family}: argument {key} became null")
                    said = json.dumps(value, ensure_ascii=False)
                    check(said in text or json.dumps(value) in text or str(value) in text, f"{family}: argument {key}={said[:80]} is not in the text")
    print(f"template {family}: {len(text)} characters in the last of {len(loaded)} rows")
print(f"{checks} checks")

"""Writes sinks/views/testdata/trl/masks.json: the text that TRL's SFTTrainer trains on in each
row of rows.jsonl in the same directory. SFTConfig has its defaults except for paths and use_cpu, which does
not change the masks. trainers.sh runs it.
"""
import glob
import hashlib
import importlib.metadata
import itertools
import json
import os
import tempfile

import trl
from datasets import disable_progress_bars, load_dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import render_jinja_template

HERE = "sinks/views/testdata/trl"
MEASURED = ("glm4moe", "lfm2_v2", "llama3_1", "qwen2_5", "qwen3", "qwen3_5_think", "qwen3_8_training", "qwen3_training")
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<s>", "<pad>"]
templates = {os.path.basename(f)[:-6]: open(f).read() for f in sorted(glob.glob(os.path.join(os.path.dirname(trl.__file__), "chat_templates", "*.jinja")))}


def render(template, row, whole, **kwargs):
    """Renders a row's prompt or, with whole, its prompt and completion."""
    messages = row["prompt"] + (row["completion"] if whole else [])
    out = render_jinja_template(conversations=[messages], tools=row["tools"], chat_template=template, bos_token="<s>", eos_token="<|im_end|>", add_generation_prompt=not whole, **kwargs)
    return out[0][0] if isinstance(out, tuple) else out[0]


def train_tokenizer(template, texts):
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    bpe.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=4000, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    fast = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", bos_token="<s>", pad_token="<pad>")
    fast.chat_template = template
    return fast


def trained(template, rows):
    """Maps the line of each row to the spans that TRL trains on. Rows that TRL drops are missing."""
    out, texts, kept = {}, [], []
    for line, row in rows:
        try:
            texts.append(render(template, row, True))
            kept.append(dict(row, line=line))
        except Exception as refusal:
            out[str(line)] = {"refused": str(refusal)}
    tok = train_tokenizer(template, texts)
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "train.jsonl")
        with open(path, "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in kept)
        data = load_dataset("json", data_files=path, split="train", cache_dir=work)
        model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tok), hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1))
        trainer = trl.SFTTrainer(model=model, args=trl.SFTConfig(output_dir=work, use_cpu=True), train_dataset=data, processing_class=tok)
        for row in trainer.train_dataset:
            batch = trainer.data_collator([{k: row[k] for k in ("input_ids", "labels")}])
            tokens = zip(batch["input_ids"][0].tolist(), batch["labels"][0].tolist())
            spans = itertools.groupby(tokens, lambda token: token[1] != -100)
            out[str(row["line"])] = {"spans": [tok.decode([i for i, _ in span]) for loss, span in spans if loss]}
    return out


def prompts_are_prefixes(template, rows):
    """Whether every rendered prompt is a prefix of prompt and completion, with the rows' enable_thinking."""
    for row in rows:
        try:
            if not render(template, row, True, **row["chat_template_kwargs"]).startswith(render(template, row, False, **row["chat_template_kwargs"])):
                return False
        except Exception:
            return False  # the template cannot render such a conversation
    return True


disable_progress_bars()
raw = open(HERE + "/rows.jsonl", "rb").read()
lines = list(enumerate(json.loads(line) for line in raw.splitlines()))
default = [(at, line["row"]) for at, line in lines if not line["mask"]]
thinking = [line["row"] for _, line in lines if line["chat_template"]]
report = {
    "versions": {p: importlib.metadata.version(p) for p in ("torch", "trl", "transformers", "datasets", "tokenizers", "jinja2")},
    "rows_sha256": hashlib.sha256(raw).hexdigest(),
    "trained": {name: trained(templates[name], default) for name in MEASURED},
    "thinking": {name: prompts_are_prefixes(text, thinking) for name, text in templates.items() if "enable_thinking" in text},
}
with open(HERE + "/masks.json", "w") as file:
    json.dump(report, file, indent=1, sort_keys=True, ensure_ascii=False)
    file.write("\n")

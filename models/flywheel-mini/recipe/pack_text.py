"""Data: picks and cleans the public text, and writes two packs that the other steps read.

    python3 pack_text.py --data FOLDER --out PACK

FOLDER holds the *.jsonl.zst files named in the model card (they are not part of this project). Written to PACK:
text.jsonl.xz  plain documents, one ["source", "text"] per line
real.jsonl.xz  real questions, tasks and dialogues as rendered chat, one ["source", "chat"] per line
Documents for perplexity (heldout_text.py) are left out. A hash of their name or text decides, the same in every run.
"""
import argparse
import hashlib
import json
import lzma
import os
import random
import re
import subprocess

BAD = re.compile(r"\b(fuck\w*|shit\w*|bitch\w*|nigg\w*|cunt\w*|dick|porn\w*|sex\w*|rape\w*|slut\w*|whore\w*|ass|asshole)\b", re.I)
SKIP_TASKS = re.compile(
    r"toxic|hate|jigsaw|sbic|offens|abuse|gender|winomt|winobias|mickey|scan_|cfq|code_x|translation|malayalam|wrong|incorrect"
    r"|perturb|mathqa|aqua|mathdataset|head_qa|pubmed|qasper|healthfact|legal|gene_|logic2text|numeric_fused|mmmlu|anecdotes"
    r"|diplomacy|hrngo|barcode|iso_numeric|calling_code|surface_area|independence|domain_tld|parsed_pdfs|hope_edi|inappropriate"
    r"|ethical|disfluent|disfl|conjoints|gap_|break_|strategyqa_question_decomp|dart|torque|opinion|casino|air_dialogue|openpi"
    r"|same_genre|domain_|kpa_|inversion|subject_count|object_count|correction|librispeech|ljspeech|zest|md_gender|conllpp|btc_"
    r"|atomic_classification|defeasible|points_of|iirc_question|hybridqa|freebase|is_the_given|coreference|gigaword|sql|logic"
)

# Reading comprehension: kept regardless of the pattern above, with a higher cap.
READING_TASKS = re.compile(r"task1625|task237|task024|task083|task178|task1731|task330|task1297|task041|task828|task1393|task1630")


def rows(folder, name):
    process = subprocess.Popen(["zstd", "-dc", os.path.join(folder, name + ".jsonl.zst")], stdout=subprocess.PIPE)
    for line in process.stdout:
        yield json.loads(line)
    if process.wait() != 0:
        raise RuntimeError(f"{name}: zstd failed")


def number_of(text):
    return int.from_bytes(hashlib.sha1(text.encode()).digest()[:4], "big")


def held_out(key):
    return number_of(key) % 40 == 0


def chat(turns, system=None):
    """The chat template's text for plain turns; the reply's think block is empty."""
    out = f"<|im_start|>system\n{system}<|im_end|>\n" if system else ""
    for role, content in turns:
        block = "<think>\n\n</think>\n\n" if role == "assistant" else ""
        out += f"<|im_start|>{role}\n{block}{content}<|im_end|>\n"
    return out


def prose_share(text):
    return sum(c.isalpha() or c in " ,.;:'\"\n?!-()" for c in text) / max(1, len(text))


def openstax(folder):
    for row in rows(folder, "openstax_ccby4"):
        text = re.sub(r"\n{2,}", "\n", row["text"])
        if len(text) > 1500 and prose_share(text) > 0.955:
            yield row["src"] + row["path"], text


def dialogues(folder):
    """(topic, turns, whether it is held out)"""
    for row in rows(folder, "self_dialogue_bsd3"):
        turns = [line.strip() for line in row["text"].split("\n") if line.strip()]
        if not BAD.search(row["text"]) and len(turns) >= 4:
            yield row["topic"].replace("_", " "), turns, held_out(row["text"])


def stories(folder):
    for row in rows(folder, "children_stories_ccby"):
        lines = [line for line in row["text"].split("\n") if line.strip() and not line.startswith(("##", "* "))]
        yield "\n".join(lines).lstrip("# ")


def fairytales(folder):
    """The text of every story, and (section, question, answer) where the answer is in the section."""
    sections, questions = {}, []
    for row in rows(folder, "fairytaleqa_apache2"):
        story = re.sub(r"-(questions|story)\.csv$", "", os.path.basename(row["path"]))
        if "text" in row:
            sections.setdefault(story, {})[row["section"]] = row["text"].strip()
        elif row["answer1"].strip():
            questions.append((story, row["question"].strip(), row["answer1"].strip().rstrip(".")))
    texts = ["\n".join(parts.values()) for parts in sections.values()]
    pairs = []
    for story, question, answer in dict.fromkeys(questions):
        found = [t for t in sections.get(story, {}).values() if answer.lower() in t.lower() and len(t) < 1300]
        if found and len(answer) > 2:
            pairs.append((found[0], question, answer))
    return texts, pairs


def novels(folder, budget):
    """The plainest pages: short words and sentences, at most one book's worth from each."""
    pages = []
    seen = set()
    for row in rows(folder, "novels_public_domain"):
        key = re.sub(r"\W", "", row["text"][2000:2400]).lower()
        if key in seen:
            continue
        seen.add(key)
        text = re.sub(r"\s*\n\s*", "\n", row["text"])
        for start in range(4000, len(text) - 4000, 3500):
            page = text[start : start + 3500]
            page = page[page.find(". ") + 2 : page.rfind(".") + 1]
            words = page.split()
            if len(words) < 300 or prose_share(page) < 0.97:
                continue
            score = sum(map(len, words)) / len(words) + 0.06 * len(words) / (1 + len(re.findall(r"[.!?]", page)))
            pages.append((score, page))
    pages.sort()
    total = 0
    for _, page in pages:
        total += len(page)
        if total > budget:
            return
        yield page


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--per-task", type=int, default=1500)
    parser.add_argument("--novels", type=int, default=20_000_000)
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    rng = random.Random(1)
    text, real = [], []

    def document(source, body):
        text.append((source, body.strip()))

    for name, body in openstax(options.data):
        if not held_out(name):
            document("openstax", body)
    for body in stories(options.data):
        document("stories", body)
    tales, pairs = fairytales(options.data)
    for body in tales:
        document("fairytales", body)
    for page in novels(options.data, options.novels):
        document("novels", page)
    for row in rows(options.data, "commonvoice_en_cc0"):
        lines = row["text"].split("\n")
        for start in range(0, len(lines), 25):
            document("commonvoice", "\n".join(lines[start : start + 25]))
    for row in rows(options.data, "factbook_cc0"):
        document("factbook", row["text"][:1600].rsplit(".", 1)[0] + ".")
    for row in rows(options.data, "tldr_en_ccby4"):
        if number_of(row["path"]) % 8 == 0:
            document("tldr", row["text"])
    for row in rows(options.data, "github_docs_ccby4"):
        body = re.sub(r"^---\n.*?\n---\n", "", row["text"], flags=re.S)
        if number_of(row["path"]) % 5 == 0 and body.count("{%") < 12 and prose_share(body) > 0.9:
            document("github-docs", body[:6000])

    for section, question, answer in pairs:
        reply = answer[0].upper() + answer[1:] + "."
        layout = rng.choice(["{s}\n\n{q}", "{s}\n\nQuestion: {q}", "Read the text and answer.\n\n{s}\n\n{q}", "{q}\n\nText: {s}", "Text: {s}\nQuestion: {q}"])
        real.append(("fairytale-qa", chat([("user", layout.format(s=section, q=question)), ("assistant", reply)])))
    for topic, turns, kept in dialogues(options.data):
        if kept:
            continue
        pairs_of = [("user" if i % 2 == 0 else "assistant", t[0].upper() + t[1:]) for i, t in enumerate(turns)]
        if pairs_of[-1][0] == "user":
            pairs_of.pop()
        system = rng.choice([f"You are chatting with a friend about {topic}.", "Chat like a friend.", f"Topic of the chat: {topic}."])
        real.append(("dialogue", chat(pairs_of, system if rng.random() < 0.6 else None)))
    for row in rows(options.data, "taskmaster_ccby4"):
        turns = [(m["role"], m["content"].strip()) for m in row["messages"]]
        if turns and turns[-1][0] == "assistant":
            real.append(("taskmaster", chat(turns, "You take orders in a coffee shop.")))
    tasks = {}
    for row in rows(options.data, "superni_en_permissive"):
        if BAD.search(row["input"]) or not row["output"].strip():
            continue
        reading = READING_TASKS.match(row["task"])
        if SKIP_TASKS.search(row["task"]) and not reading:
            continue
        if len(row["input"]) + len(row["output"]) < (1500 if reading else 900):
            tasks.setdefault(row["task"], []).append(row)
    for task, instances in sorted(tasks.items()):
        for row in rng.sample(instances, min(len(instances), options.per_task * (3 if READING_TASKS.match(task) else 1))):
            definition = row["definition"].strip()
            while len(definition) > 260 and ". " in definition:
                definition = definition.rsplit(". ", 1)[0] + "."
            prompt = rng.choice(["{d}\n\n{i}", "{d}\n{i}", "{i}\n\n{d}"]).format(d=definition, i=row["input"].strip())
            real.append(("superni", chat([("user", prompt[:2000]), ("assistant", row["output"].strip())])))
    for name, items in (("text", text), ("real", real)):
        rng.shuffle(items)
        with lzma.open(os.path.join(options.out, name + ".jsonl.xz"), "wt", preset=6) as out:
            for item in items:
                out.write(json.dumps(item, ensure_ascii=False) + "\n")
    sizes = {}
    for group, items in (("text", text), ("real", real)):
        for source, body in items:
            entry = sizes.setdefault(group + "/" + source, [0, 0])
            entry[0] += 1
            entry[1] += len(body)
    for key, (count, chars) in sorted(sizes.items()):
        print(f"{key:24} {count:8} documents {chars / 1e6:8.2f} M characters")


if __name__ == "__main__":
    main()

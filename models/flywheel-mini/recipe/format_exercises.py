"""Format exercises: real short questions under the "one word" wordings, and small facts with a question.

    python3 format_exercises.py --data FOLDER --out PACK      writes PACK/formats.jsonl.xz

The wordings are those of bank/asks.txt, read with the same grammar as tasks/wording.ts. Nothing that the generator
holds out is used: neither the wordings that tasks/split.ts keeps nor a prompt whose hash is on the held-out side.
"""
import argparse
import json
import lzma
import os
import random
import re

from pack_text import BAD, chat, rows

ONE_WORD_TASKS = re.compile(r"task(820|898|1508|1582|1146|041|1321|344)_")


# Entries of oneWordFormats (tasks/one-word.ts) before those of bank/asks.txt.
OWN_WORDINGS = 15


def held_out_prompt(prompt):
    """splitOf(promptKey(...)) of tasks/split.ts and tasks/families.ts."""
    h = 0x811C9DC5
    for char in "split/prompt:" + re.sub(r"[^a-z0-9+*\n -]", "", prompt.lower()):
        h = (h ^ ord(char)) * 0x01000193 & 0xFFFFFFFF
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return (h ^ h >> 16) % 8 == 0


class Wording:
    """{a|b}, [x], $name and @section, as in tasks/wording.ts."""

    def __init__(self, path):
        self.sections, name = {}, None
        with open(path) as lines:
            for line in lines:
                line = line.rstrip("\n")
                if line.startswith("## "):
                    name = line[3:]
                    self.sections[name] = []
                elif line.strip() and not line.startswith("# "):
                    self.sections[name].append(line.replace("\\n", "\n"))

    def say(self, rng, text, values):
        while True:
            match = re.search(r"\{([^{}\[\]]*)\}|\[([^{}\[\]]*)\]", text)
            if not match:
                break
            inner = match[1] if match[1] is not None else match[2]
            chosen = rng.choice(inner.split("|"))
            if match[1] is None and rng.random() < 0.5:
                chosen = ""
            text = text[: match.start()] + chosen + text[match.end() :]
        text = re.sub(r"@([a-z]+)", lambda m: self.say(rng, rng.choice(self.sections["@" + m[1]]), values), text)
        return re.sub(r"\$([a-z]+)", lambda m: str(values[m[1]]), text)


def question_of(rng, row):
    """(question, answer) of a row, or None."""
    task, text, answer = row["task"], row["input"].strip(), row["output"].strip().rstrip(".")
    if task.startswith("task1508"):
        return f"What is the opposite of {text.split()[-1].lower()}?", answer
    if task.startswith("task1582"):
        return f"What kind of thing is a {text}?", answer
    if task.startswith("task1146"):
        return f"What is the capital of {text}?", answer
    if task.startswith("task1321"):
        return f"On which continent is {text}?", answer
    if task.startswith("task041"):
        return text.split("Question:")[-1].strip(), answer
    if len(text) > 140:
        return None
    return text[0].upper() + text[1:] + ("" if text[-1] in "?." else "?" if rng.random() < 0.5 else "."), answer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    rng = random.Random(3)
    wording = Wording(os.path.join(os.path.dirname(os.path.abspath(__file__)), "bank", "asks.txt"))
    listed = wording.sections["one-word"] + wording.sections["one-word-parts"]
    formats = [text for index, text in enumerate(listed, OWN_WORDINGS) if index % 6 != 5]
    made = []
    for row in rows(options.data, "superni_en_permissive"):
        if not ONE_WORD_TASKS.match(row["task"]) or BAD.search(row["input"] + row["output"]):
            continue
        if row["task"].startswith("task041"):
            fact = re.search(r"Fact: (.*?)\s*\n?\s*Question: (.*)", row["input"], re.S)
            if fact:
                body = fact[1].strip()[:1].upper() + fact[1].strip()[1:]
                layout = rng.choice(["{p} {q}", "{p}\n\n{q}", "{q}\n\n{p}", "Text: {p}\nQuestion: {q}", "{p}\nQuestion: {q}"])
                reply = row["output"].strip().rstrip(".")
                made.append(chat([("user", layout.format(p=body, q=fact[2].strip())), ("assistant", reply[:1].upper() + reply[1:] + ".")]))
        pair = question_of(rng, row)
        if pair is None or not re.fullmatch(r"[A-Za-z'-]{2,14}", pair[1]):
            continue
        prompt = wording.say(rng, rng.choice(formats), {"q": pair[0]})
        if held_out_prompt(prompt):
            continue
        made.append(chat([("user", prompt), ("assistant", pair[1][:1].upper() + pair[1][1:])]))
    rng.shuffle(made)
    with lzma.open(os.path.join(options.out, "formats.jsonl.xz"), "wt", preset=6) as out:
        for text in made:
            out.write(json.dumps(("superni", text), ensure_ascii=False) + "\n")
    print("format exercises:", len(made))


if __name__ == "__main__":
    main()

"""Held-out text for perplexity: the documents that pack_text.py withholds from training, without near-duplicates of training text.

    python3 heldout_text.py --data FOLDER --out heldout.jsonl

OpenStax reuses pages among its books, and a few dialogues were collected twice. A document is dropped if more than one in
twenty of its runs of 13 words occurs in a training document of its kind. Writes one ["source", "text"] per line.
"""
import argparse
import json
import re

from pack_text import dialogues, held_out, openstax

RUN, SHARED = 13, 0.05


def runs(text):
    words = re.findall(r"\w+", text.lower())
    return [hash(tuple(words[i : i + RUN])) for i in range(len(words) - RUN + 1)]


def without_twins(kept, training):
    """Both lists of texts; `training` may be any iterable."""
    known = set()
    for text in training:
        known.update(runs(text))
    result = []
    for text in kept:
        mine = runs(text)
        if mine and sum(run in known for run in mine) / len(mine) <= SHARED:
            result.append(text)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    pages = [(body.strip(), held_out(name)) for name, body in openstax(options.data)]
    talks = [("\n".join(turns), kept) for _, turns, kept in dialogues(options.data)]
    with open(options.out, "w") as out:
        for source, documents in (("openstax", pages), ("dialogue", talks)):
            kept = [text for text, held in documents if held]
            alone = without_twins(kept, (text for text, held in documents if not held))
            print(f"{source}: {len(kept)} held out, {len(alone)} without a twin in training")
            for text in alone:
                out.write(json.dumps([source, text], ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

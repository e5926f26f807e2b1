"""Reading exercises from the real text of the pack: questions whose answer is a span of the passage, made by rule.

    python3 reading_exercises.py --pack PACK        writes PACK/reading.jsonl.xz from PACK/text.jsonl.xz

Simple past-tense sentences ("The king gave the knight a ring in the garden.") yield who, what and where questions; quoted
speech yields "who said"; numbers yield "how many"; any sentence yields a gap to fill or a sentence to complete.
"""
import argparse
import json
import lzma
import os
import random
import re

IRREGULAR = dict(
    pair.split("/")
    for pair in (
        "went/go saw/see ate/eat ran/run took/take gave/give came/come wrote/write spoke/speak drank/drink sang/sing swam/swim bought/buy "
        "thought/think brought/bring taught/teach caught/catch found/find made/make said/say told/tell knew/know grew/grow flew/fly "
        "began/begin broke/break drove/drive rode/ride fell/fall felt/feel kept/keep slept/sleep left/leave lost/lose met/meet sent/send "
        "built/build sat/sit stood/stand won/win threw/throw drew/draw held/hold heard/hear led/lead paid/pay sold/sell shook/shake "
        "hid/hide woke/wake wore/wear chose/choose stole/steal fought/fight sought/seek bit/bite blew/blow became/become forgot/forget "
        "got/get had/have put/put set/set cut/cut shut/shut let/let read/read rose/rise shone/shine spent/spend swore/swear tore/tear "
        "understood/understand lay/lie laid/lay lit/light bent/bend bound/bind crept/creep dug/dig fed/feed fled/flee hung/hang"
    ).split()
)
REGULAR = (
    "ask answer open close walk talk look call want need love like live move play help work turn start stop wait watch jump laugh cry "
    "carry marry hurry try reply cover discover remember follow show learn listen enter visit travel reach return arrive gather collect "
    "pick kick push pull touch wash cook bake clean paint plant climb cross pass drop hop beg step slip wrap plan grab shout whisper smile "
    "stare point knock save serve receive believe notice promise dance place raise race use change arrange decide invite promise prepare "
    "share taste hate hope tie die join enjoy destroy obey stay pray play lift last count invent appear disappear offer order gather "
    "wander wonder suffer build explain explore examine demand command thank fill kill fix mix finish polish punish wish rush crash fetch "
    "watch search stretch catch attack pack lock block check back seem rain roar sail fail nail chain happen own beat cheat treat repeat"
).split()
NUMBERS = "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred".split()
PERSONS = set(
    "boy girl man woman king queen prince princess mother father brother sister son daughter wife husband child children witch giant fox wolf "
    "bear lion cat dog bird mouse hen cow horse farmer fisherman soldier servant maid lady lord knight teacher doctor friend uncle aunt "
    "grandmother grandfather old stranger thief miller tailor shoemaker hunter shepherd people villagers men women boys girls".split()
)


def past_of(base):
    if base.endswith("e"):
        return base + "d"
    if re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ied"
    if re.search(r"^[^aeiou]*[aeiou][bdgmnpt]$", base):
        return base + base[-1] + "ed"
    return base + "ed"


BASES = {**{past_of(base): base for base in REGULAR}, **IRREGULAR}
DETERMINER = r"(?:The|A|An|His|Her|My|Their|Our|One|This|That|Every|Some|Many|Most|Two|Three)"
SUBJECT = rf"(?P<s>{DETERMINER} (?:[a-z]+ ){{0,2}}?[a-z]+|[A-Z][a-z]+(?: [A-Z][a-z]+)?)"
OPENER = r"^(?:(?:Then|So|But|And|Now|Soon|Suddenly|Finally|Later|One day|At last|That night|The next day|The next morning|In the evening|After that|First|Once),? )?"
PLACE = r"(?:in|on|at|under|behind|near|into|to|from|by|over|through|beside|inside|outside|across|around) (?:the|a|an|his|her|their|my|its|this) [a-z]+(?: [a-z]+)?"
SIMPLE = re.compile(rf"{OPENER}{SUBJECT} (?P<v>[a-z]+) (?P<o>[a-zA-Z0-9' -]+?)(?P<p> {PLACE})?(?P<b>,? because [a-z' ]+)?[.!]$")
PLACED = re.compile(rf"{OPENER}{SUBJECT} (?P<v>lived|sat|stood|lay|was|were|went|came|ran|walked|stayed|slept|jumped|climbed|fell|returned|arrived|waited|looked) (?:[a-z]+ ){{0,2}}(?P<p>{PLACE})\b")
ISA = re.compile(rf"^(?P<s>{DETERMINER} (?:[a-z]+ )?[a-z]+|[A-Z][a-z]+(?: [a-z]+)?) (?P<v>is|are|was|were) (?P<o>(?:a|an|the|one of) [a-z' -]{{4,60}}?)(?:,| that| which| who|\.)")
PASSIVE = re.compile(rf"^{SUBJECT} (?:was|were|is|are) (?P<v>[a-z]+(?:ed|en|un|wn|de|ld|nt|ght)) by (?P<o>(?:the|a|an|his|her|their|my) (?:[a-z]+ )?[a-z]+|[A-Z][a-z]+(?: [A-Z][a-z]+)?)\b")
NAMED = re.compile(r"\b(?:a|an|the|his|her|their|my) (?:[a-z]+ )?(?P<n>[a-z]+) (?:called|named|whose name was) (?P<o>[A-Z][a-z]+(?: [A-Z][a-z]+)?)\b")
SAID = re.compile(r"""["“](?P<q>[A-Z][^"”]{8,80}?)[,.!?]["”] (?:said|asked|cried|answered|replied|shouted) (?P<s>(?:the|his|her|a|an|my) (?:[a-z]+ )?[a-z]+|[A-Z][a-z]+)\b""")
COLORED = re.compile(r"\b(?P<o>red|green|blue|yellow|white|black|brown|golden|silver|gray|grey|pink|purple|orange) (?P<n>[a-z]{3,})\b")
YEAR = re.compile(r"\bin (?P<o>1[5-9]\d\d|20\d\d)\b")
DAY = re.compile(r"\bon (?P<o>Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)\b")
PRONOUNS = {"He", "She", "It", "They", "We", "You", "I", "There", "Then", "But", "And", "So", "When", "What", "This", "That", "If", "As", "For", "Oh", "Yes", "No", "All", "Now", "These", "Those", "Here", "Who", "Yours", "Mine", "Where", "Why", "How", "Which", "Not", "Well", "Nothing", "Something", "Someone", "Please"}
LAYOUTS = [
    "{p}\n\n{q}", "{p}\n\nQuestion: {q}", "{q}\n\n{p}", "Text: {p}\nQuestion: {q}", "Read the text and answer.\n\n{p}\n\n{q}", "{p} {q}",
    "Passage: {p}\n\n{q}", "{q}\n\nText: {p}", "Use the text to answer: {q}\n\n{p}", "Here is a text: {p}\n\n{q}", "\"{p}\"\n\n{q}",
    "Answer the question from the text.\n{p}\n{q}", "Context: {p}\nQ: {q}\nA:", "I read this: {p}\nTell me: {q}",
]


def is_name(subject):
    return not re.match(rf"{DETERMINER}\b", subject)


def inside(subject):
    """The subject as it stands in the middle of a sentence."""
    return subject if is_name(subject) else subject[0].lower() + subject[1:]


def asker(subject):
    return "Who" if is_name(subject) or set(subject.lower().split()) & PERSONS else "What"


def questions(rng, sentence):
    """(question, answer) pairs for one sentence."""
    out = []
    match = SIMPLE.match(sentence)
    if match and match["v"] in BASES and len(sentence) < 150 and match["s"].split()[0] not in PRONOUNS:
        verb, rest, where, why = match["v"], match["o"], match["p"] or "", match["b"]
        base, who = BASES[verb], inside(match["s"])
        out.append((f"{asker(match['s'])} {verb} {rest}{where}?", match["s"]))
        if re.match(r"(the|a|an|his|her|their|some|two|three|four|five) ", rest) and " and " not in rest and len(rest.split()) < 6:
            out.append((f"What did {who} {base}{where}?", rest))
        if where:
            out.append((f"Where did {who} {base} {rest}?", where.strip()))
        if why:
            out.append((f"Why did {who} {base} {rest}{where}?", why.lstrip(", ")))
    match = PLACED.match(sentence)
    if match and match["s"].split()[0] not in PRONOUNS:
        verb, who = match["v"], inside(match["s"])
        out.append((f"Where {verb} {who}?" if verb in ("was", "were") else f"Where did {who} {BASES.get(verb, verb)}?", match["p"]))
    match = ISA.match(sentence)
    if match and match["s"].split()[0] not in PRONOUNS:
        out.append((f"{rng.choice(['What', 'What']) if not is_name(match['s']) else 'Who or what'} {match['v']} {inside(match['s'])}?", match["o"]))
    match = PASSIVE.match(sentence)
    if match and match["s"].split()[0] not in PRONOUNS:
        out.append((f"{'Who or what'} {match['v']} {inside(match['s'])}?" if match["v"].endswith("ed") else f"By whom or what was {inside(match['s'])} {match['v']}?", match["o"]))
    match = NAMED.search(sentence)
    if match:
        out.append((rng.choice(["What is the {} called?", "What is the name of the {}?", "What was the {}'s name?"]).format(match["n"]), match["o"]))
    match = SAID.search(sentence)
    if match:
        out.append((rng.choice(["Who said: \"{}\"?", "Who said \"{}\"?", "Which person said: \"{}\"?"]).format(match["q"]), match["s"]))
    match = COLORED.search(sentence)
    if match:
        out.append((rng.choice(["What color is the {}?", "What color was the {}?", "Which color did the {} have?"]).format(match["n"]), match["o"]))
    match = YEAR.search(sentence) or DAY.search(sentence)
    if match:
        kind = "year" if match["o"].isdigit() else "day"
        out.append((rng.choice(["Which {} is mentioned?", "What {} does the text name?", "In which {} did this happen?" if kind == "year" else "On which {} was it?"]).format(kind), match["o"]))
    match = re.search(rf"\b({'|'.join(NUMBERS)}|\d+) ([a-z]{{3,}}s)\b", sentence)
    if match and rng.random() < 0.35:
        out.append((rng.choice(["How many {}?", "How many {} are mentioned?", "How many {} are there in the text?", "How many {} were there?"]).format(match[2]), match[1]))
    return out


def gap_question(rng, sentence):
    """A sentence with a word or its second half missing."""
    words = sentence.split()
    if not 6 <= len(words) <= 20 or not re.match(r"^[A-Z][A-Za-z ,'-]+\.$", sentence):
        return []
    at = rng.randrange(2, len(words))
    gap = re.sub(r"[^A-Za-z0-9'-]", "", words[at])
    if len(gap) > 3 and rng.random() < 0.6:
        shown = " ".join(words[:at] + ["____"] + words[at + 1 :])
        return [(rng.choice(["Fill in the missing word: {}", "Which word is missing? {}", "Complete the sentence with one word from the text: {}"]).format(shown), gap)]
    cut = len(words) // 2
    return [(rng.choice(["Complete the sentence from the text: {} ...", "How does the sentence go on? {} ..."]).format(" ".join(words[:cut])), " ".join(words[cut:]).rstrip("."))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pack", required=True)
    parser.add_argument("--limit", type=int, default=90_000)
    options = parser.parse_args()
    rng = random.Random(7)
    made = {}
    with lzma.open(os.path.join(options.pack, "text.jsonl.xz"), "rt") as lines:
        for source, text in map(json.loads, lines):
            if source not in ("stories", "fairytales", "novels", "openstax", "commonvoice"):
                continue
            sentences = [s for s in re.split(r"(?<=[.!?\"])\s+", text.replace("\n", " ")) if 15 < len(s) < 260 and not s.startswith("#")]
            step = 5 if source == "openstax" else 2
            for start in range(0, len(sentences) - 6, step):
                passage = sentences[start : start + rng.randint(2, 6)]
                body = " ".join(passage)
                pairs = [pair for sentence in passage for pair in questions(rng, sentence)]
                if not pairs and rng.random() < 0.12:
                    pairs = gap_question(rng, rng.choice(passage))
                if len(body) < 900 and pairs:
                    made.setdefault(source, []).append((body, *rng.choice(pairs)))
    caps = {"openstax": 0.3, "commonvoice": 0.15, "novels": 0.25}
    total = 0
    path = os.path.join(options.pack, "reading.jsonl.xz")
    with lzma.open(path + ".part", "wt", preset=1) as out:
        for source, items in made.items():
            rng.shuffle(items)
            kept = items[: int(caps.get(source, 1.0) * options.limit)]
            total += len(kept)
            for body, question, answer in kept:
                prompt = rng.choice(LAYOUTS).format(p=body, q=question)
                reply = answer[0].upper() + answer[1:] + ("" if answer.endswith((".", "!", "?")) else ".")
                chat = f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n{reply}<|im_end|>\n"
                out.write(json.dumps((source, chat), ensure_ascii=False) + "\n")
            print(f"reading exercises from {source}: {len(items)} made, {len(kept)} kept")
    os.replace(path + ".part", path)
    print("reading exercises:", total)


if __name__ == "__main__":
    main()

// "List three fruits" in the three usual shapes: numbered lines (the default), bullets, commas.

import { capitalised, sets, topics } from "./bank.ts";
import { type Conversation, exchange } from "./conversation.ts";
import { type Draw, pickWording } from "./split.ts";
import { asTyped, say } from "./wording.ts";

const numberWords = ["zero", "one", "two", "three", "four", "five", "six"];
const asks: readonly string[] = [
  "{List|Name|Give me|Tell me|Write down} $n $set{.|}",
  "{What are|Can you name|Could you list|Do you know|Can you give me} $n $set?",
  "{I need|Give me|Write} a list of $n $set{.|}",
  "$n $set{, please|}.",
  "{Think of|Come up with|Show me} $n {examples of |}$set{.|}",
  "{Please list|Please name|Please write down} $n $set{.|}",
  "{Which $n $set do you know|What $n $set can you name}?",
  "{Enumerate|Mention|Pick} $n $set{.|}",
];
const shapes = {
  numbered: ["", "", "", " {Use|As|Make it} a numbered list.", " Number them."],
  bullets: [
    " {Use|As|With} bullet points.",
    " {Make it|As} a bulleted list.",
    " {Put|Write} a dash before each {one|item}.",
    " Use bullets.",
  ],
  commas: [
    " {Separate them with|Use} commas.",
    " {On|In} one line, separated by commas.",
    " Write them in one line.",
    " Comma-separated, please.",
  ],
};

export function list(draw: Draw): Conversation {
  const { rng } = draw;
  const [set, members] = rng.pick(sets);
  const count = Math.min(
    rng.weighted([
      [2, 2],
      [3, 6],
      [4, 2],
      [5, 2],
      [6, 1],
    ]),
    members.length,
  );
  const items = rng.sample(members, count);
  const shape = rng.weighted([
    ["numbered", 5],
    ["bullets", 2],
    ["commas", 2],
  ] as const);
  const n = rng.chance(0.75) ? (numberWords[count] as string) : String(count);
  const request = capitalised(say(rng, pickWording(draw, asks), { n, set }));
  const ending = /[.?]$/.test(request) ? "" : ".";
  const prompt = asTyped(rng, request + ending + say(rng, rng.pick(shapes[shape])));
  const reply =
    shape === "numbered"
      ? items.map((item, index) => `${index + 1}. ${capitalised(item)}`).join("\n")
      : shape === "bullets"
        ? items.map((item) => `- ${capitalised(item)}`).join("\n")
        : items.join(", ");
  return exchange("list", prompt, reply, { kind: "list", count });
}

/** Two or three things to say about a topic, as a numbered list. */
export function factList(draw: Draw): Conversation {
  const { rng } = draw;
  const about = rng.pick(topics.filter((topic) => topic.facts.length >= 2));
  const count = rng.int(2, Math.min(3, about.facts.length));
  const n = numberWords[count] as string;
  const prompt = say(rng, "{Tell me|List|Give me|Write} $n {facts|things} about $general{.| as a list.}", {
    n,
    general: about.general,
  });
  const items = rng.sample(about.facts, count);
  return exchange("list", asTyped(rng, prompt), items.map((item, i) => `${i + 1}. ${item}`).join("\n"), {
    kind: "list",
    count,
  });
}

/** "Which one does not belong?" */
export function oddOneOut(draw: Draw): Conversation {
  const { rng } = draw;
  const usable = sets.filter(([name]) => !/things|numbers|animals|foods|items/.test(name));
  const [[set, members], [, others]] = rng.sample(usable, 2) as [[string, string[]], [string, string[]]];
  const odd = rng.pick(others.filter((item) => !members.includes(item)));
  const shown = rng.shuffle([...rng.sample(members, 3), odd]);
  const prompt = say(
    rng,
    "{Which {word|one} does not {belong|fit}|Find the odd one out|What is the odd one out|Which word is different}: $items{?|.|}",
    { items: shown.join(", ") },
  );
  const reply = rng.chance(0.5)
    ? `${capitalised(odd)}.`
    : `${capitalised(odd)} does not belong, because the others are ${set}.`;
  return exchange("odd-one-out", asTyped(rng, prompt), reply, { kind: "contains", any: [odd] });
}

/** "Put these into a sentence" of things: "a, b and c". */
export function joinItems(draw: Draw): Conversation {
  const { rng } = draw;
  const [, members] = rng.pick(sets);
  const items = rng.sample(members, rng.int(2, 4));
  const lines = items.map((item) => `- ${item}`).join("\n");
  const prompt = say(
    rng,
    "{Write|Join|Put} {these|the following} {items|words} {in one line with commas|as one comma-separated line}{:|.}",
    {},
  );
  return exchange("list", `${prompt}\n${lines}`, items.join(", "), { kind: "exact", text: items.join(", ") });
}

// Finding a value by its key in a list, a table or a few sentences. Keys and values are made up, so nothing can be memorized.

import { type Conversation, exchange } from "./conversation.ts";
import { anyWords, personName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { asTyped, say } from "./wording.ts";

/** How one pair is written, and how it is asked for; $k key, $v value, $w what the value is. */
const shapes: readonly { what: string[]; keys: "person" | "word"; line: string; ask: string[] }[] = [
  {
    what: ["age", "number", "code", "score", "room", "size"],
    keys: "person",
    line: "{$k: $v|$k has the $w $v.|The $w of $k is $v.|$k - $v}",
    ask: [
      "What is the $w of $k?",
      "{Which|What} $w does $k have?",
      "{Tell|Give} me the $w of $k.",
      "$k's $w?",
      "What $w belongs to $k?",
      "I need the $w of $k.",
    ],
  },
  {
    what: ["price", "weight", "count", "number", "page"],
    keys: "word",
    line: "{$k: $v|$k - $v|The $w of $k is $v.|$k ($v)|$k = $v}",
    ask: [
      "What is the $w of $k?",
      "{Which|What} $w does $k have?",
      "{Look up|Find|Give me} the $w of $k.",
      "$k: which $w?",
      "What does the list say for $k?",
      "Find $k. What is its $w?",
    ],
  },
];
const intro = [
  "",
  "",
  "{List|Table|Data|Notes|Here is a list}:\n",
  "{Look at this|Look at the list|Use this list|Read this}:\n",
  "{Prices|Numbers|Records}:\n",
];

export function lookup(draw: Draw): Conversation {
  const { rng } = draw;
  const shape = rng.pick(shapes);
  const w = rng.pick(shape.what);
  const size = rng.int(2, 7);
  const keys = shape.keys === "person" ? distinct(rng, size, personName) : anyWords(rng, size);
  const wordsAsValues = rng.chance(0.35);
  const values = wordsAsValues
    ? anyWords(rng, size)
    : keys.map(() => String(rng.int(1, rng.pick([20, 100, 1000, 10000]))));
  const at = rng.int(0, size - 1);
  const [k, v] = [keys[at] as string, values[at] as string];
  if (splitOf(`lookup:${keys.join()}`) !== draw.split) return lookup(draw);
  const line = /^\{(.*)\}$/.exec(shape.line)?.[1]?.split("|") ?? [shape.line];
  const pattern = rng.pick(line);
  const separator = pattern.endsWith(".") ? " " : rng.pick(["\n", "\n", ", ", "; "]);
  const body =
    say(rng, rng.pick(intro)) +
    keys.map((key, i) => say(rng, pattern, { k: key, v: values[i] as string, w })).join(separator);
  const question = say(rng, pickWording(draw, shape.ask), { k, w });
  const prompt = rng.chance(0.7) ? `${body}\n\n${question}` : `${question}\n\n${body}`;
  if (rng.chance(0.15)) return reverse(rng, body, k, v, w);
  return exchange("lookup", prompt, rng.chance(0.75) ? v : `The ${w} of ${k} is ${v}.`, { kind: "contains", any: [v] });
}

function reverse(rng: Rng, body: string, k: string, v: string, w: string): Conversation {
  const question = say(rng, "{Who or what has the $w $v|Which entry has the $w $v|Whose $w is $v}?", { w, v });
  return exchange("lookup", `${body}\n\n${question}`, k, { kind: "contains", any: [k] });
}

function distinct(rng: Rng, count: number, make: (rng: Rng) => string): string[] {
  const out = new Set<string>();
  while (out.size < count) out.add(make(rng));
  return [...out];
}

const echoes = [
  "{Repeat|Copy|Say|Write|Echo|Type} {the number|this number|the code}{:|} $v{.|}",
  "{Say|Write} $v{.|}",
  "{The number is|My code is|The code is|Remember} $v. {What is it|Which number was it|Repeat it|Say it again|What was the number}{?|.}",
  "I said $v. What did I say?",
];

/** A number or an odd string, to be repeated unchanged. */
export function echo(draw: Draw): Conversation {
  const { rng } = draw;
  const letters = "abcdefghijklmnopqrstuvwxyz";
  const v = rng.chance(0.6)
    ? String(rng.int(10, 99999))
    : Array.from({ length: rng.int(3, 7) }, () =>
        rng.chance(0.3) ? String(rng.int(0, 9)) : letters.charAt(rng.int(0, 25)),
      ).join("");
  return exchange("lookup", asTyped(rng, say(rng, rng.pick(echoes), { v }), false), v, { kind: "contains", any: [v] });
}

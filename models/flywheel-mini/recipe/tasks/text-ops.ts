// Small operations on given words or sentences: case, order, counting, sorting, copying, picking. Every answer can be
// computed, so every reply has a check.

import { lexicon, sentences, words } from "./bank.ts";
import { type Check, type Conversation, exchange } from "./conversation.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { asTyped, say } from "./wording.ts";

interface Operation {
  /** $x is the text to work on, quoted or not. */
  asks: string[];
  /** "words": a list of words; "sentence": a sentence; "word": one word. */
  input: "words" | "sentence" | "word";
  apply(items: string[]): string;
  number?: boolean;
}

const upper = (text: string) => text.toUpperCase();
const alphabetical = (items: string[]) => [...items].sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));

const operations: readonly Operation[] = [
  {
    input: "sentence",
    asks: [
      "{Write|Put|Rewrite|Convert|Turn} {this|the following|this sentence} {in|into|to} {uppercase|capital letters|upper case|all caps}: $x",
      "{Uppercase|Capitalize every letter of} {this|the text}: $x",
      "{Make|Change} {this|the sentence} {all uppercase|all caps|upper case}: $x",
      "In capital letters: $x",
      "SHOUT this: $x",
      "{Can you write|Please write} $x in {uppercase|capital letters|all caps}?",
    ],
    apply: (items) => upper(items.join(" ")),
  },
  {
    input: "word",
    asks: [
      "{Write|Put|Say|Spell} {the word |}$x in {uppercase|capital letters|upper case|all caps}{.|}",
      "{Uppercase|Capitalize all letters of} {the word |}$x{.|}",
      "{What is|How do you write} $x in {uppercase|capital letters}?",
      "Make $x uppercase.",
    ],
    apply: (items) => upper(items.join(" ")),
  },
  {
    input: "sentence",
    asks: [
      "{Write|Put|Convert|Turn} {this|the following} {in|into|to} {lowercase|small letters|lower case}: $u",
      "{Lowercase|Make lowercase}: $u",
      "In small letters: $u",
      "{Change|Rewrite} {this|the text} {to|in} {lowercase|lower case}: $u",
    ],
    apply: (items) => items.join(" ").toLowerCase(),
  },
  {
    input: "words",
    asks: [
      "{Reverse|Turn around|Flip} {the order of |}{these words|the words|this list}: $x",
      "{Write|Say|Put|Give} {these words|the words} {in reverse order|backwards|from last to first}: $x",
      "{Reverse|Flip} the {word order|order}: $x",
      "What is the reverse order of: $x",
      "Last to first: $x",
      "Backwards, please: $x",
    ],
    apply: (items) => [...items].reverse().join(" "),
  },
  {
    input: "words",
    asks: [
      "{Sort|Order|Arrange|Put} {these words|the words|this list}[ alphabetically| in alphabetical order| from A to Z]: $x",
      "{Sort|Order} alphabetically: $x",
      "{Alphabetical order|Put in ABC order}, please: $x",
      "{Put|Write} {these words|the words} in alphabetical order: $x",
      "{Can you sort|Please sort} {these|the words}: $x",
      "Which alphabetical order do these have? $x",
    ],
    apply: (items) => alphabetical(items).join(" "),
  },
  {
    input: "sentence",
    asks: [
      "How many words {are in|does} {this sentence|the sentence|this}[ have]{:|?} $x",
      "Count the words{: $x| in: $x| of this sentence: $x}",
      "{What is the number of words|Tell me the number of words|The number of words} in: $x",
      "Word count of: $x",
      "{Give|Tell} me the word count: $x",
    ],
    apply: (items) => String(items.length),
    number: true,
  },
  {
    input: "words",
    asks: [
      "How many words {are there|are in this list|do you see}{:|?} $x",
      "Count {these words|the words|the items}: $x",
      "{What is|Tell me} the number of words: $x",
    ],
    apply: (items) => String(items.length),
    number: true,
  },
  {
    input: "word",
    asks: [
      "How many letters {are in|does} {the word |}$x[ have]?",
      "Count the letters {in|of} $x{.|}",
      "{What is|Tell me} the number of letters in $x{.|?}",
      "How long is the word $x?",
    ],
    apply: (items) => String((items[0] as string).length),
    number: true,
  },
  {
    input: "sentence",
    asks: [
      "{Repeat|Copy|Say|Echo|Write}{ this| this sentence| after me| exactly}: $x",
      "{Copy|Repeat} the {following|text} {exactly|word for word}: $x",
      "Say this back to me: $x",
      "{Please repeat|Please copy|Just repeat}: $x",
      "Echo: $x",
      "{Type|Write} exactly this: $x",
    ],
    apply: (items) => items.join(" "),
  },
  {
    input: "words",
    asks: [
      "{Repeat|Copy|Say|Echo|Write}{ these words| this list| after me|}: $x",
      "{Copy|Repeat} the words: $x",
      "Say these words back to me: $x",
    ],
    apply: (items) => items.join(" "),
  },
  {
    input: "word",
    asks: [
      "{Repeat|Say|Write} {the word |}$x {three times|3 times}{.|}",
      "{Write|Say} $x {three|3} times in a row{.|}",
    ],
    apply: (items) => Array(3).fill(items[0]).join(" "),
  },
  {
    input: "word",
    asks: ["{Repeat|Say|Write} {the word |}$x {twice|two times|2 times}{.|}"],
    apply: (items) => Array(2).fill(items[0]).join(" "),
  },
  {
    input: "words",
    asks: [
      "{What is|Give me|Tell me|Which is} the first word{:|?| in:} $x",
      "First word of: $x",
      "{Take|Pick|Return} only the first word: $x",
    ],
    apply: (items) => items[0] as string,
  },
  {
    input: "words",
    asks: [
      "{What is|Give me|Tell me|Which is} the last word{:|?| in:} $x",
      "Last word of: $x",
      "{Take|Pick|Return} only the last word: $x",
    ],
    apply: (items) => items[items.length - 1] as string,
  },
  {
    input: "words",
    asks: ["{What is|Give me|Tell me} the second word{:|?| in:} $x", "Second word of: $x"],
    apply: (items) => items[1] as string,
  },
  {
    input: "words",
    asks: ["{What is|Which is|Find|Give me} the longest word{:|?| in:} $x", "Longest word: $x"],
    apply: (items) => items.reduce((best, word) => (word.length > best.length ? word : best)),
  },
  {
    input: "words",
    asks: ["{What is|Which is|Find|Give me} the shortest word{:|?| in:} $x", "Shortest word: $x"],
    apply: (items) => items.reduce((best, word) => (word.length < best.length ? word : best)),
  },
  {
    input: "word",
    asks: [
      "{Spell|Please spell|Can you spell} {the word |}$x{.|}",
      "How do you spell $x?",
      "{Write|Give me} the letters of $x{.|}",
      "{Break|Split} $x into letters{.|}",
    ],
    apply: (items) => [...(items[0] as string)].join("-"),
  },
  {
    input: "word",
    asks: ["{What is|Tell me|Give me} the first letter of $x{.|?}", "{Which|What} letter does $x {start|begin} with?"],
    apply: (items) => (items[0] as string).charAt(0),
  },
  {
    input: "word",
    asks: ["{What is|Tell me|Give me} the last letter of $x{.|?}", "{Which|What} letter does $x end with?"],
    apply: (items) => (items[0] as string).slice(-1),
  },
  {
    input: "words",
    asks: [
      "{Join|Connect|Put together} {these words|the words} with {commas|a comma}: $x",
      "{Separate|Write} {these words|the words} with commas: $x",
      "Comma-separated, please: $x",
    ],
    apply: (items) => items.join(", "),
  },
  {
    input: "words",
    asks: [
      "{Join|Connect} {these words|the words} with {hyphens|dashes|a hyphen}: $x",
      "Put a hyphen between {these words|the words}: $x",
    ],
    apply: (items) => items.join("-"),
  },
  {
    input: "words",
    asks: ["{Write|Put} each word on {its own|a new} line: $x", "{One word per line|One per line}: $x"],
    apply: (items) => items.join("\n"),
  },
];

function inputFor(draw: Draw, operation: Operation): string[] {
  const { rng } = draw;
  const plain = words.filter((word) => /^[a-z]+$/.test(word));
  for (;;) {
    let items: string[];
    const supply = rng.chance(0.6) ? lexicon : plain;
    if (operation.input === "word") items = [rng.pick(supply)];
    else if (operation.input === "words" || rng.chance(0.4)) items = rng.sample(supply, rng.int(2, 7));
    else items = rng.pick(sentences).split(" ");
    const lengths = items.map((word) => word.length);
    const clear = (pick: (...values: number[]) => number) => lengths.filter((n) => n === pick(...lengths)).length === 1;
    if (/longest/.test(operation.asks[0] as string) && !clear(Math.max)) continue;
    if (/shortest/.test(operation.asks[0] as string) && !clear(Math.min)) continue;
    if (operation.input !== "words" || splitOf(`text:${items.join(" ")}`) === draw.split) return items;
  }
}

export function textOperation(draw: Draw): Conversation {
  const { rng } = draw;
  const operation = rng.pick(operations);
  const items = inputFor(draw, operation);
  const list = operation.input === "words" && rng.chance(0.4);
  let shown = items.join(list ? ", " : " ");
  if (operation.input !== "words" ? rng.chance(0.4) : rng.chance(0.1)) shown = `"${shown}"`;
  const prompt = say(rng, pickWording(draw, operation.asks), { x: shown, u: shown.toUpperCase() });
  const reply = operation.apply(items);
  const check: Check =
    operation.number === true ? { kind: "number", value: Number(reply) } : { kind: "exact", text: reply };
  const typed = operation.input === "sentence" ? prompt : asTyped(rng, prompt, operation.input === "word");
  const thought = reply.length < 60 && rng.chance(0.08) ? think(items, operation, reply) : undefined;
  return exchange("text-ops", typed, reply, check, thought);
}

function think(items: string[], operation: Operation, reply: string): string {
  if (operation.number === true) {
    const units = operation.input === "word" ? [...(items[0] as string)] : items;
    return `${units.map((unit, index) => `${index + 1}: ${unit}`).join("\n")}\nThe number is ${reply}.`;
  }
  return `The text is: ${items.join(" ")}\nThe result is: ${reply}`;
}

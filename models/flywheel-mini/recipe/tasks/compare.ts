// Comparing and ordering numbers, and small deductions about who is taller or older.

import { type Conversation, exchange } from "./conversation.ts";
import { personName } from "./made-up.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { asTyped, say } from "./wording.ts";

const askLarger = [
  "{Which|What} {number |}is {larger|bigger|greater|higher}{:|,} $a or $b?",
  "{Which is|What is} the {larger|bigger|greater} {number|one}{:|,} $a or $b?",
  "{Larger|Bigger}: $a or $b?",
  "Between $a and $b, which {is|number is} {larger|bigger|greater}?",
  "{Pick|Tell me|Choose} the {larger|bigger|greater} number: $a, $b",
  "Is $a or $b the {larger|bigger} number?",
];
const askSmaller = [
  "{Which|What} {number |}is {smaller|lower|less}{:|,} $a or $b?",
  "{Which is|What is} the {smaller|lower} {number|one}{:|,} $a or $b?",
  "Smaller: $a or $b?",
  "Between $a and $b, which {is|number is} {smaller|lower}?",
  "{Pick|Tell me|Choose} the smaller number: $a, $b",
  "Is $a or $b the {smaller|lower} number?",
];
const askMax = [
  "{What is|Find|Tell me|Give me} the {largest|biggest|highest|maximum} {number |}{of|in|among}: $l",
  "{Largest|Biggest|Maximum|Max} of $l?",
  "Which of these numbers is the {largest|biggest}: $l",
];
const askMin = [
  "{What is|Find|Tell me|Give me} the {smallest|lowest|minimum} {number |}{of|in|among}: $l",
  "{Smallest|Lowest|Minimum|Min} of $l?",
  "Which of these numbers is the {smallest|lowest}: $l",
];
const askUp = [
  "{Sort|Order|Arrange|Put} {these|the} numbers[ from {small to large|smallest to largest|low to high}| in ascending order]: $l",
  "{Sort|Order}: $l",
  "{Smallest first|Ascending order|From small to large}: $l",
  "{Can you sort|Please sort} {these|the numbers}: $l",
];
const askDown = [
  "{Sort|Order|Arrange|Put} {these|the} numbers {from {large to small|largest to smallest|high to low}|in descending order}: $l",
  "{Largest first|Descending order|From large to small}: $l",
];

export function compareNumbers(draw: Draw): Conversation {
  const { rng } = draw;
  const top = rng.pick([20, 100, 100, 1000]);
  const style = rng.weighted([
    ["larger", 4],
    ["smaller", 3],
    ["max", 2],
    ["min", 2],
    ["up", 4],
    ["down", 2],
    ["next", 2],
    ["parity", 2],
  ] as const);
  if (style === "next" || style === "parity") return nextOrParity(draw, style, rng.int(1, top));
  const count = style === "larger" || style === "smaller" ? 2 : rng.int(3, 5);
  let list: number[];
  do {
    list = [...new Set(Array.from({ length: count }, () => rng.int(0, top)))];
  } while (list.length < count || splitOf(`compare:${list.join()}`) !== draw.split);
  const wording = { larger: askLarger, smaller: askSmaller, max: askMax, min: askMin, up: askUp, down: askDown }[style];
  const values = { a: list[0] as number, b: list[1] as number, l: list.join(", ") };
  const prompt = asTyped(rng, say(rng, pickWording(draw, wording), values));
  if (style === "up" || style === "down") {
    const sorted = [...list].sort((x, y) => (style === "up" ? x - y : y - x)).join(", ");
    return exchange("compare", prompt, sorted, { kind: "exact", text: sorted });
  }
  const value = style === "larger" || style === "max" ? Math.max(...list) : Math.min(...list);
  return exchange("compare", prompt, String(value), { kind: "number", value });
}

function nextOrParity(draw: Draw, style: "next" | "parity", n: number): Conversation {
  const { rng } = draw;
  if (style === "parity") {
    const prompt = say(rng, "{Is $n even or odd|Is $n an even or an odd number|Even or odd: $n|$n: odd or even}?", {
      n,
    });
    const answer = n % 2 === 0 ? "even" : "odd";
    return exchange("compare", asTyped(rng, prompt), rng.chance(0.5) ? `${n} is ${answer}.` : answer, {
      kind: "contains",
      any: [answer],
    });
  }
  const after = rng.chance(0.6);
  const prompt = say(
    rng,
    after
      ? "{What|Which} number {comes after|is after|follows} $n?"
      : "{What|Which} number {comes before|is before} $n?",
    { n },
  );
  const value = after ? n + 1 : n - 1;
  return exchange("compare", asTyped(rng, prompt), String(value), { kind: "number", value });
}

const traits = [
  ["taller", "tallest", "shortest"],
  ["older", "oldest", "youngest"],
  ["faster", "fastest", "slowest"],
  ["stronger", "strongest", "weakest"],
] as const;

/** "Anna is taller than Ben. Ben is taller than Carl. Who is the tallest?" */
export function ranking(draw: Draw): Conversation {
  const { rng } = draw;
  let people: string[];
  do people = [...new Set([personName(rng), personName(rng), personName(rng)])];
  while (people.length < 3 || splitOf(`rank:${people.join()}`) !== draw.split);
  const [a, b, c] = people as [string, string, string];
  const [more, most, least] = rng.pick(traits);
  const statements = rng.chance(0.6)
    ? [`${a} is ${more} than ${b}.`, `${b} is ${more} than ${c}.`]
    : [`${b} is ${more} than ${c}.`, `${a} is ${more} than ${b}.`];
  const top = rng.chance(0.6);
  const who = top ? a : c;
  const question = say(rng, "{Who is the $x|Which of them is the $x|Tell me who is the $x}{?|}", {
    x: top ? most : least,
  });
  const thought = rng.chance(0.3) ? `The order is ${a}, ${b}, ${c}. The ${top ? most : least} is ${who}.` : undefined;
  return exchange(
    "ranking",
    `${statements.join(" ")} ${question}`,
    rng.chance(0.5) ? `${who}.` : `${who} is the ${top ? most : least}.`,
    { kind: "contains", any: [who] },
    thought,
  );
}

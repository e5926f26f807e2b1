// Sums, differences and products of small numbers, answered with the bare number. With thinking on, they are worked out digit
// by digit first. Number pairs are split between training and held-out regardless of wording and order. Three-digit addition
// without thinking is not in the mix: tuning adds a small separate set, so that it stays half-learned and RL has work to do.

import { asksOf } from "./bank.ts";
import { type Conversation, exchange } from "./conversation.ts";
import { personName } from "./made-up.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { asTyped, say } from "./wording.ts";

type Sign = "+" | "-" | "*";

const asks: Record<Sign, readonly string[]> = {
  "+": [
    "What is $a + $b?",
    "$a + $b",
    "$a + $b = {?|}",
    "{Calculate|Compute|Work out|Solve|Evaluate} $a + $b{.|}",
    "What is $a plus $b?",
    "{Add|Please add|Can you add} $a and $b{.|?|}",
    "{How much is|What's|whats|what does} $a {plus|+} $b{?|}",
    "{What is|Find|Give me|Tell me|Compute} the {sum|total} of $a and $b{.|?|}",
    "{Add|Please add} $b to $a{.|}",
    "$a {plus|added to} $b {is|equals|makes|=} {?|what?}",
    "$a+$b",
    "{What do you get|What is the result} if you add $a and $b?",
    "Sum: $a + $b",
    "I have $a and get $b more. How many do I have?",
    "{What is|Calculate} {the result of|the value of} $a + $b{?|.}",
    ...asksOf("add"),
    ...asksOf("add-parts"),
    ...asksOf("add-parts"),
  ],
  "-": [
    "What is $a - $b?",
    "$a - $b",
    "$a - $b = {?|}",
    "{Calculate|Compute|Work out|Solve} $a - $b{.|}",
    "What is $a minus $b?",
    "{Subtract|Take|Take away} $b from $a{.|}",
    "{How much is|What's} $a {minus|-} $b?",
    "{What is|Find|Tell me} the difference {between|of} $a and $b{.|?}",
    "$a-$b",
    "I have $a and give away $b. How many are left?",
    ...asksOf("subtract"),
  ],
  "*": [
    "What is $a * $b?",
    "$a * $b",
    "$a x $b",
    "$a * $b = {?|}",
    "{Calculate|Compute|Work out|Solve} $a {*|x|times} $b{.|}",
    "What is $a times $b?",
    "{Multiply|Please multiply} $a {by|and|with} $b{.|}",
    "{How much is|What's} $a {times|x|*} $b?",
    "{What is|Find} the product of $a and $b{.|?}",
    "$a times $b",
    ...asksOf("multiply"),
  ],
};
const stepwise = [
  "{Think|Go|Work|Solve it} step by step{.|}",
  "{Show your work|Show the steps|Explain your steps|Show me how}{.|}",
  "Do it digit by digit.",
];

export function pairKey(sign: Sign, a: number, b: number): string {
  return sign === "-" || a <= b ? `${sign}:${a}:${b}` : `${sign}:${b}:${a}`;
}

function operands(draw: Draw, sign: Sign, digits: number): [number, number] {
  const { rng } = draw;
  const size = (n: number): [number, number] => (n === 1 ? [0, 9] : [10 ** (n - 1), 10 ** n - 1]);
  for (;;) {
    let a = rng.int(...size(digits));
    let b =
      digits > 1 && draw.split === "train" && rng.chance(0.25)
        ? rng.int(1, 10 ** digits - 1)
        : rng.int(...size(digits));
    if (sign === "*" && digits > 1) b = rng.int(2, 9);
    if (sign === "*" && digits === 1) [a, b] = [rng.int(0, 12), rng.int(0, 12)];
    if (sign === "-" && a < b) [a, b] = [b, a];
    if (draw.split === "train" && rng.chance(0.5) && sign !== "-") [a, b] = [b, a];
    // The multiplication table must be learned by heart, so all of it is in training, in other wordings.
    if ((sign === "*" && digits === 1) || splitOf(pairKey(sign, a, b)) === draw.split) return [a, b];
  }
}

export function resultOf(sign: Sign, a: number, b: number): number {
  return sign === "+" ? a + b : sign === "-" ? a - b : a * b;
}

/** [sign, digits, thinking, weight in training] */
const mix: readonly (readonly [readonly [Sign, number, boolean], number])[] = [
  [["+", 1, false], 2],
  [["+", 2, false], 22],
  [["+", 1, true], 1],
  [["+", 2, true], 4],
  [["+", 3, true], 9],
  [["-", 1, false], 1.5],
  [["-", 2, false], 8],
  [["-", 2, true], 2],
  [["-", 3, true], 3],
  [["*", 1, false], 4],
  [["*", 2, false], 1],
  [["*", 1, true], 0.5],
  [["*", 2, true], 2],
];

export function arithmetic(draw: Draw): Conversation {
  const [sign, digits, thinking] = draw.rng.weighted(mix);
  return sum(draw, sign, digits, thinking);
}

export function sum(draw: Draw, sign: Sign, digits: number, thinking: boolean): Conversation {
  const { rng } = draw;
  const [a, b] = operands(draw, sign, digits);
  const result = resultOf(sign, a, b);
  let prompt = say(rng, pickWording(draw, asks[sign]), { a, b });
  const check = { kind: "number" as const, value: result };
  const steps = workOut(sign, a, b);
  if (thinking && rng.chance(0.15) && draw.split === "train") {
    const conversation = exchange(
      "arithmetic-steps",
      `${prompt}${/[.?]$/.test(prompt) ? "" : "."} ${say(rng, rng.pick(stepwise))}`,
      `${steps}\nThe answer is ${result}.`,
      check,
    );
    return conversation;
  }
  if (draw.split === "train") prompt = asTyped(rng, prompt);
  const name = { "+": "add", "-": "subtract", "*": "multiply" }[sign];
  return exchange(
    `${name}-${digits}${thinking ? "-think" : ""}`,
    prompt,
    String(result),
    check,
    thinking ? steps : undefined,
  );
}

/** The written method, from the last digit to the first, one line per column. */
export function workOut(sign: Sign, a: number, b: number): string {
  const lines = [`${a} ${sign} ${b}`];
  if (sign === "*" && a < 10 && b < 10) return `${a} * ${b} = ${a * b}`;
  const [top, bottom] = sign === "*" && a < b ? [b, a] : [a, b];
  const digit = (value: number, place: number) => Math.floor(value / 10 ** place) % 10;
  const places = String(sign === "*" ? top : Math.max(a, b)).length;
  let carry = 0;
  for (let place = 0; place < places; place++) {
    const [x, y] = [digit(top, place), digit(bottom, place)];
    const last = place === places - 1;
    if (sign === "+") {
      const total = x + y + carry;
      const left = carry > 0 ? `${x} + ${y} + ${carry}` : `${x} + ${y}`;
      lines.push(
        `${left} = ${total}${last ? `, write ${total}` : `, write ${total % 10}, carry ${Math.floor(total / 10)}`}`,
      );
      carry = Math.floor(total / 10);
    } else if (sign === "-") {
      const kept = x - carry;
      const front = carry > 0 ? `${x} - 1 = ${kept}, ` : "";
      const borrow = kept < y ? 1 : 0;
      lines.push(
        `${front}${borrow > 0 ? `${kept} + 10 = ${kept + 10}, ` : ""}${kept + 10 * borrow} - ${y} = ${kept + 10 * borrow - y}${last ? "" : `, borrow ${borrow}`}`,
      );
      carry = borrow;
    } else {
      const product = x * bottom;
      const total = product + carry;
      const left =
        carry > 0 ? `${x} * ${bottom} = ${product}, ${product} + ${carry} = ${total}` : `${x} * ${bottom} = ${product}`;
      lines.push(`${left}${last ? `, write ${total}` : `, write ${total % 10}, carry ${Math.floor(total / 10)}`}`);
      carry = Math.floor(total / 10);
    }
  }
  lines.push(String(resultOf(sign, a, b)));
  return lines.join("\n");
}

const things = [
  "apples",
  "books",
  "coins",
  "stamps",
  "cards",
  "marbles",
  "eggs",
  "flowers",
  "pencils",
  "shells",
  "cookies",
  "balls",
];
const problems: readonly [Sign, string[], string][] = [
  [
    "+",
    [
      "$n has $a $t and {gets|buys|finds|receives} $b more. How many $t does $n have[ now| in total]?",
      "$n has $a $t. $m has $b $t. How many $t do they have together?",
      "There are $a $t on the table and $b $t in the box. How many $t are there?",
      "$n picked $a $t in the morning and $b in the evening. How many in all?",
    ],
    "{$r $t.|The answer is $r.|There are $r $t.}",
  ],
  [
    "-",
    [
      "$n has $a $t and {gives away|loses|sells|eats} $b. How many $t {are left|does $n have left}?",
      "There are $a $t in a box. $n takes $b. How many remain?",
      "$n had $a $t. Now $b are gone. How many $t are still there?",
    ],
    "{$r $t.|The answer is $r.|$r $t are left.}",
  ],
  [
    "*",
    [
      "$n buys $a boxes with $b $t each. How many $t are there?",
      "There are $a bags. Each bag has $b $t. How many $t in total?",
    ],
    "{$r $t.|The answer is $r.|There are $r $t.}",
  ],
];

export function wordProblem(draw: Draw): Conversation {
  const { rng } = draw;
  const [sign, wordings, reply] = rng.pick(problems);
  const digits =
    sign === "*"
      ? 1
      : rng.weighted([
          [1, 2],
          [2, 3],
        ]);
  const [a, b] = operands(draw, sign, digits);
  const [n, m] = [personName(rng), personName(rng)];
  const values = { n, m, a, b, t: rng.pick(things), r: resultOf(sign, a, b) };
  const thinking = rng.chance(0.3) ? workOut(sign, a, b) : undefined;
  return exchange(
    "word-problem",
    say(rng, rng.pick(wordings), values),
    say(rng, reply, values),
    { kind: "number", value: values.r },
    thinking,
  );
}

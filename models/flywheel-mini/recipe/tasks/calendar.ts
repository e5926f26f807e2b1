// Days, months, clock times and units: what comes next, how many, how much in another unit.

import { membersOf } from "./bank.ts";
import { type Check, type Conversation, exchange } from "./conversation.ts";
import { type Draw, pickWording } from "./split.ts";
import { asTyped, say } from "./wording.ts";

const days = membersOf("days of the week");
const months = membersOf("months");
const monthLengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const at = (list: string[], index: number): string =>
  list[((index % list.length) + list.length) % list.length] as string;

const one = (prompt: string, reply: string, check: Check): Conversation => exchange("calendar", prompt, reply, check);

function dayOrMonth(draw: Draw): Conversation {
  const { rng } = draw;
  const list = rng.chance(0.55) ? days : months;
  const word = list === days ? "day" : "month";
  const index = rng.int(0, list.length - 1);
  const after = rng.chance(0.6);
  const x = at(list, index);
  const answer = at(list, index + (after ? 1 : -1));
  const wording = after
    ? [
        "{What|Which} $w comes after $x?",
        "{What|Which} $w {is|follows} after $x?",
        "{What is|Tell me|Name} the $w after $x{.|?}",
        "After $x comes which $w?",
        "{Next $w after|The $w that follows} $x?",
        "If {today is|this is|it is now} $x, what {comes next|is next}?",
      ]
    : [
        "{What|Which} $w comes before $x?",
        "{What is|Tell me|Name} the $w before $x{.|?}",
        "{What|Which} $w is before $x?",
        "The $w before $x?",
      ];
  return one(asTyped(rng, say(rng, pickWording(draw, wording), { w: word, x })), answer, {
    kind: "contains",
    any: [answer],
  });
}

function daysLater(draw: Draw): Conversation {
  const { rng } = draw;
  const index = rng.int(0, 6);
  const n = rng.int(1, 7);
  const back = rng.chance(0.3);
  const answer = at(days, index + (back ? -n : n));
  const x = at(days, index);
  const wording = back
    ? "{Today is|It is} $x. {What|Which} day was it $n day{s|s} ago?"
    : "{{Today is|It is} $x. {What|Which} day {is it|will it be} in $n days?|{What|Which} day is $n days after $x?}";
  const steps = Array.from({ length: n }, (_, i) => at(days, index + (back ? -(i + 1) : i + 1)));
  const thought = rng.chance(0.35)
    ? `Start at ${x}.\n${steps.map((day, i) => `${i + 1}: ${day}`).join("\n")}`
    : undefined;
  return exchange(
    "calendar",
    say(rng, wording, { x, n }),
    `${answer}${rng.chance(0.3) ? "." : ""}`,
    { kind: "contains", any: [answer] },
    thought,
  );
}

function monthFact(draw: Draw): Conversation {
  const { rng } = draw;
  const index = rng.int(0, 11);
  const m = at(months, index);
  if (rng.chance(0.5)) {
    const n = monthLengths[index] as number;
    const prompt = say(rng, "{How many days {does $m have|are in $m|has $m}|What is the number of days in $m}?", { m });
    return one(asTyped(rng, prompt), index === 1 ? "28 days, or 29 in a leap year." : `${n} days.`, {
      kind: "contains",
      any: [String(n)],
    });
  }
  const ordinals = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
  ];
  const prompt = say(rng, "{What|Which} is the $o month {of the year|}?", { o: ordinals[index] as string });
  return one(asTyped(rng, prompt), m, { kind: "contains", any: [m] });
}

function clock(draw: Draw): Conversation {
  const { rng } = draw;
  const hour = rng.int(1, 12);
  const add = rng.int(1, 6);
  const later = ((hour + add - 1) % 12) + 1;
  const prompt = say(
    rng,
    "It is $h o'clock{. What time {is it|will it be} in $n hour$s?| now. What is the time $n hour$s later?}",
    { h: hour, n: add, s: add === 1 ? "" : "s" },
  );
  return one(prompt, `It will be ${later} o'clock.`, { kind: "contains", any: [String(later)] });
}

/** [big unit, small unit, how many] */
const units: readonly (readonly [string, string, number])[] = [
  ["hours", "minutes", 60],
  ["minutes", "seconds", 60],
  ["days", "hours", 24],
  ["weeks", "days", 7],
  ["years", "months", 12],
  ["meters", "centimeters", 100],
  ["kilometers", "meters", 1000],
  ["kilograms", "grams", 1000],
  ["liters", "milliliters", 1000],
  ["centimeters", "millimeters", 10],
  ["dollars", "cents", 100],
  ["euros", "cents", 100],
  ["feet", "inches", 12],
  ["yards", "feet", 3],
  ["dozens", "pieces", 12],
  ["decades", "years", 10],
  ["centuries", "years", 100],
  ["tons", "kilograms", 1000],
];

function unit(draw: Draw): Conversation {
  const { rng } = draw;
  const [big, small, factor] = rng.pick(units);
  const n = rng.int(1, factor === 24 || factor === 60 || factor === 12 || factor === 7 ? 10 : 20);
  const name = n === 1 ? (big === "feet" ? "foot" : big === "centuries" ? "century" : big.slice(0, -1)) : big;
  if (rng.chance(0.3)) {
    const prompt = say(rng, "{How many $big are|What is} $v $small{? Give it in $big.| in $big?}", {
      big,
      small,
      v: n * factor,
    });
    return one(asTyped(rng, prompt), `${n} ${name}.`, { kind: "number", value: n });
  }
  const wording = [
    "How many $small {are|are in|are there in|make} $n $name?",
    "{Convert|Change} $n $name {to|into} $small{.|}",
    "$n $name in $small{?|}",
    "{What is|How much is} $n $name in $small?",
    "$n $name {equals|is|are} how many $small?",
    "Express $n $name in $small.",
  ];
  const prompt = asTyped(rng, say(rng, pickWording(draw, wording), { small, n, name }));
  return one(prompt, `${n * factor} ${small}.`, { kind: "number", value: n * factor });
}

export function calendar(draw: Draw): Conversation {
  const make = draw.rng.weighted([
    [dayOrMonth, 5],
    [daysLater, 3],
    [monthFact, 3],
    [clock, 2],
    [unit, 5],
  ] as const);
  return make(draw);
}

// New tools named after what they do: a random verb and a random thing. The request says both in its own words, so that the model
// chooses a tool and its arguments by their names, not from memory. The other offered tools share the verb or the thing.

import { membersOf } from "./bank.ts";
import { type Conversation, type Message, type Tool, user } from "./conversation.ts";
import { personName, placeName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { call, others } from "./tools.ts";
import { asTyped, say } from "./wording.ts";

/** Verb in the name -> how people say it, before the thing. */
const verbs: Readonly<Record<string, readonly string[]>> = {
  clean: ["clean", "tidy up"],
  close: ["close", "shut"],
  open: ["open", "open up"],
  start: ["start", "turn on", "switch on"],
  stop: ["stop", "turn off", "switch off"],
  lock: ["lock", "lock up"],
  find: ["find", "look for", "search for"],
  order: ["order", "get", "call for"],
  buy: ["buy", "get", "purchase"],
  sell: ["sell", "put up for sale"],
  book: ["book", "reserve"],
  cancel: ["cancel", "call off"],
  check: ["check", "look at", "have a look at"],
  track: ["track", "find out about", "follow"],
  feed: ["feed", "give food to"],
  water: ["water", "give water to"],
  paint: ["paint", "color"],
  repair: ["repair", "fix", "mend"],
  move: ["move", "bring", "carry"],
  send: ["send", "mail", "ship"],
  print: ["print", "print out"],
  copy: ["copy", "make a copy of"],
  delete: ["delete", "remove", "throw away"],
  add: ["add", "put in", "enter"],
  rent: ["rent", "hire"],
  wash: ["wash", "do the washing of"],
  heat: ["heat", "warm up"],
  measure: ["measure", "take the size of"],
  count: ["count", "tell me the number of"],
  show: ["show", "show me", "display"],
};
/** Things, as they appear in names (two words are joined with _). */
const things = (
  "door window garage car bike boat plant garden cat dog horse fish bird chair table bed lamp heater oven fridge train bus taxi ferry " +
  "ticket package letter parcel photo video song report form bill invoice meeting lesson room hall pool sauna shirt shoe coat carpet curtain roof wall fence " +
  "gate tree lawn flower basket bottle cup plate pizza soup cake salad sandwich coffee juice medicine doctor nurse teacher driver guide guest tent stove"
).split(" ");

interface Argument {
  keys: readonly string[];
  type: "string" | "integer";
  make(rng: Rng): string | number;
  /** How people say it after the thing, and by itself. */
  said: readonly string[];
  alone: readonly string[];
}

const rooms = ["kitchen", "bedroom", "bathroom", "cellar", "office", "attic", "hallway", "balcony", "garden", "yard"];
const argument = (
  keys: string,
  type: Argument["type"],
  make: Argument["make"],
  said: string,
  alone: string,
): Argument => ({ keys: keys.split(" "), type, make, said: said.split(" ; "), alone: alone.split(" ; ") });

const places: readonly Argument[] = [
  argument(
    "room place area",
    "string",
    (rng) => rng.pick(rooms),
    "in the $v ; of the $v",
    "It is in the $v. ; I mean the one in the $v.",
  ),
  argument(
    "city town place location",
    "string",
    placeName,
    "in $v ; near $v ; around $v",
    "I am in $v. ; The place is $v.",
  ),
  argument("destination to city", "string", placeName, "to $v ; for $v", "It goes to $v. ; To $v, please."),
];
const rest: readonly Argument[] = [
  argument(
    "name person owner",
    "string",
    personName,
    "for $v ; of $v",
    "The name is $v. ; It is for $v. ; It belongs to $v.",
  ),
  argument(
    "number id code",
    "integer",
    (rng) => rng.int(10, 99999),
    "number $v ; with the number $v ; $v",
    "The number is $v. ; It has the code $v.",
  ),
  argument(
    "color",
    "string",
    (rng) => rng.pick(membersOf("colors")),
    "in $v",
    "The color is $v. ; In $v, please. ; I want it $v.",
  ),
  argument(
    "day date when",
    "string",
    (rng) => rng.pick(membersOf("days of the week")),
    "on $v ; for $v ; next $v",
    "On $v, please. ; I need it on $v.",
  ),
  argument(
    "count amount quantity",
    "integer",
    (rng) => rng.int(2, 90),
    "- $v of them ; , $v pieces",
    "I want $v. ; $v, please. ; Make it $v.",
  ),
];

/** $a what to do, $t the thing, $x the arguments after it. */
const asks = [
  "{Please |Could you please |Can you |I want you to |}$a {the|my|our} $t $x{.|}",
  "{can u|pls|could you|hey,} $a {the|my|a} $t $x",
  "$a {the |my |a |}$t $x",
  "{I need somebody to|It is time to|Somebody should|We have to|I'd like to} $a {the|our|this} $t $x{.|}",
  "{The|My|Our} $t $x: {please |}$a it{.|}",
  "{Would you mind? |One more thing. |Before I forget: }$a {the|my} $t $x{.|}",
  "$t $x, $a {pls|please|}",
  "{How do I|Is there a way to|Can this app} $a {the|a} $t $x?",
];
const alone = [
  "{Please |Could you |Can you |}$a {the|my|our} $t{?|.} $y",
  "$y {Please |Can you |}$a {the|my} $t{.|?}",
  "$a {the|my|a} $t. $y",
];

interface Made {
  tool: Tool;
  values: [argument: Argument, key: string, value: string | number][];
}

function make(rng: Rng, verb: string, thing: string): Made {
  const wanted = rng.shuffle([rng.pick(places), ...rng.sample(rest, rng.int(0, 2))]).slice(0, rng.int(1, 2));
  const properties: Record<string, Record<string, unknown>> = {};
  const values: Made["values"] = [];
  for (const each of wanted) {
    const key = rng.pick(each.keys.filter((name) => properties[name] === undefined));
    properties[key] = { type: each.type };
    values.push([each, key, each.make(rng)]);
  }
  const plural = rng.chance(0.3) ? "s" : "";
  const name = rng.pick([`${verb}_${thing}${plural}`, `${verb}_${thing}`, `${thing}_${verb}`, camel(verb, thing)]);
  const parameters = { type: "object" as const, properties, required: Object.keys(properties) };
  const tool: Tool = { type: "function", function: { name, parameters } };
  if (rng.chance(0.6)) tool.function.description = `${camel("", verb)} ${rng.pick(["a", "the"])} ${thing}`;
  return { tool, values };
}

const camel = (first: string, second: string): string => `${first}${second.charAt(0).toUpperCase()}${second.slice(1)}`;

export function wordTool(draw: Draw): Conversation {
  const { rng } = draw;
  const all = Object.keys(verbs);
  let [verb, thing] = ["", ""];
  do [verb, thing] = [rng.pick(all), rng.pick(things)];
  while (splitOf(`word-tool:${verb}_${thing}`) !== draw.split);
  const { tool, values } = make(rng, verb, thing);
  const taken = new Set([tool.function.name]);
  const offered = [tool];
  for (let i = rng.int(1, 3); i > 0; i--) {
    const kin = rng.weighted([
      ["verb", 2],
      ["thing", 1],
      ["none", 3],
    ] as const);
    const other = make(rng, kin === "verb" ? verb : rng.pick(all), kin === "thing" ? thing : rng.pick(things)).tool;
    const same = other.function.name.includes(verb) && other.function.name.toLowerCase().includes(thing);
    if (same || taken.has(other.function.name)) continue;
    taken.add(other.function.name);
    offered.push(other);
  }
  if (rng.chance(0.3)) offered.push(...others(rng, [...taken], 1));
  const a = rng.pick(verbs[verb] as readonly string[]);
  const said = (list: "said" | "alone") => values.map(([each, , v]) => say(rng, rng.pick(each[list]), { v })).join(" ");
  const prompt = rng.chance(0.3)
    ? say(rng, rng.pick(alone), { a, t: thing, y: said("alone") })
    : say(rng, pickWording(draw, asks), { a, t: thing, x: said("said") });
  const args = Object.fromEntries(values.map(([, key, value]) => [key, value]));
  const name = tool.function.name;
  const reply: Message = { role: "assistant", content: null, tool_calls: [call(name, args)] };
  return {
    family: "tool-call",
    messages: [user(asTyped(rng, rng.chance(0.6) ? camel("", prompt) : prompt, false)), reply],
    tools: rng.shuffle(offered),
    check: { kind: "tool", name, arguments: args },
  };
}

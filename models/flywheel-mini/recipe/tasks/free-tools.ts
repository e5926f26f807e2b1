// Tool calls in free words: loose wordings among other talk, with tools offered that are easily mixed up with the right one, and
// with values of several words that must be taken whole.

import { freeToolAsksOf, sentences } from "./bank.ts";
import { type Conversation, type Message, type Tool, user } from "./conversation.ts";
import { anyWord, personName, phrase, placeName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { type ParameterKind, type ToolKind, toolKinds } from "./tool-bank.ts";
import { asksFor, call, offer, others } from "./tools.ts";
import { asTyped, say } from "./wording.ts";

/** Tools (by first name) that a careless reader confuses. */
const kin: readonly (readonly string[])[] = [
  ["get_weather", "get_forecast", "get_time"],
  ["turn_on_light", "turn_off_light", "set_temperature", "set_mode"],
  ["set_alarm", "set_timer", "set_reminder"],
  ["send_message", "send_email", "call_person", "create_note"],
  ["add_event", "list_events", "set_reminder", "book_table"],
  ["add_to_list", "order_product", "get_price", "create_note"],
  ["add", "multiply", "convert_currency", "random_number"],
  ["find_restaurant", "book_table", "get_directions"],
  ["book_flight", "get_directions", "get_time"],
  ["web_search", "define_word", "translate", "movie_info"],
  ["get_user", "track_package", "order_product"],
  ["roll_dice", "random_number"],
  ["play_music", "set_volume", "movie_info", "open_app"],
  ["get_stock_price", "convert_currency", "get_price"],
];

/** Values of more than one word, by what the parameter is about. */
const longer: Readonly<Record<string, (rng: Rng) => string>> = {
  "the city": (rng) =>
    `${rng.pick(["New", "Port", "San", "Saint", "North", "Old", "Upper", "Lake", "Fort", "El"])} ${placeName(rng)}`,
  "the name of the person": (rng) =>
    rng.pick([
      () => `${personName(rng)} ${personName(rng)}`,
      () => `${rng.pick(["Dr.", "Mrs.", "Mr.", "Aunt", "Uncle", "Professor"])} ${personName(rng)}`,
      () => rng.pick(["Mom", "Dad", "Grandma", "Grandpa", "the landlord", "the dentist", "the bakery", "the plumber"]),
    ])(),
  "what to say": (rng) => sentence(rng),
  "the note": (rng) => sentence(rng),
  "the item": (rng) =>
    `${rng.pick(["fresh", "black", "small", "wooden", "frozen", "green", "dry", "paper", "winter"])} ${anyWord(rng)}`,
  "what to look for": (rng) => `${anyWord(rng)} ${rng.pick(["for", "near", "with", "in", "of"])} ${phrase(rng)}`,
  "the room": (rng) =>
    rng.pick([
      "guest room",
      "dining room",
      "upper hall",
      "children's room",
      "laundry room",
      "cellar",
      "attic",
      "porch",
    ]),
  "the title": (rng) =>
    `${rng.pick(["The", "My", "One", "Last"])} ${anyWord(rng)} ${rng.pick(["of", "in", "and"])} ${anyWord(rng)}`,
  "where to go": (rng) =>
    `the ${rng.pick(["old", "main", "new"])} ${rng.pick(["station", "museum", "market", "harbor"])}`,
};

function sentence(rng: Rng): string {
  const text = rng.chance(0.5)
    ? rng.pick(sentences)
    : say(
        rng,
        "{I will be $m minutes late|the $w is in the $v|can you bring the $w|we meet at $m $v Street|please feed the $w|don't forget the $w and the $v|dinner is at {six|seven|eight}|the $w of $n is here|I left the $w at home}",
        { m: rng.int(2, 59), w: anyWord(rng), v: anyWord(rng), n: personName(rng) },
      );
  return text.replace(/[.!?]$/, "");
}

const valueFor = (rng: Rng, parameter: ParameterKind): string | number => {
  const make = longer[parameter.about];
  return make !== undefined && rng.chance(0.45) ? make(rng) : parameter.make(rng);
};

/** Talk around the request: names, places and numbers in it are no arguments. */
const before: readonly string[] = [
  "{I'm|We're|I am} in $q {right now|today|this week}.",
  "$n {is here with me|says hello|is waiting for me|just left}.",
  "{I have|There are} {only |about |}$m {things to do|mails to read|guests coming|pages left}.",
  "{Sorry to bother you again|Good to have you|You are a great help|Long day}.",
  "{I was talking to|I just met|Yesterday I saw} $n {in $q|about a $w}.",
  "{My hands are full|I am in the car|I'm cooking|I can't type much}.",
  "{So|Well|Right}, {listen|here is the thing}:",
];
const after: readonly string[] = [
  "$n {asked me to do this|wants to know|told me to ask you}.",
  "{I'm in a hurry|I am driving|My phone is almost empty|It is urgent}.",
  "{I promised it to|It is for} $n.",
  "{Thanks|Thank you|You are the best|Cheers}{.|!}",
];

function kinOf(rng: Rng, kind: ToolKind): ToolKind[] {
  const groups = kin.filter((group) => group.includes(kind.names[0] as string));
  const mates = [...new Set(groups.flat())].filter((name) => name !== kind.names[0]);
  return rng.sample(mates, rng.int(1, 3)).map((name) => toolKinds.find((other) => other.names[0] === name) as ToolKind);
}

export function freeTool(draw: Draw): Conversation {
  const { rng } = draw;
  const kind = rng.pick(toolKinds);
  const { tool, spelling } = offer(rng, kind);
  const name = tool.function.name;
  const taken = new Set(kind.names);
  const offered: Tool[] = [tool];
  for (const mate of kinOf(rng, kind)) {
    const { tool: other } = offer(rng, mate);
    if (taken.has(other.function.name)) continue;
    taken.add(other.function.name);
    offered.push(other);
  }
  if (rng.chance(0.3)) offered.push(...others(rng, [...taken], 1));
  const values: Record<string, string | number> = {};
  do {
    for (const [variable, parameter] of Object.entries(kind.parameters)) values[variable] = valueFor(rng, parameter);
  } while (splitOf(`tool:${Object.values(values).join("/")}`) !== draw.split && rng.chance(0.98));
  const args: Record<string, unknown> = {};
  for (const [variable, key] of Object.entries(spelling)) args[key] = values[variable];
  const free = freeToolAsksOf(kind.names[0] as string);
  const wording = free.length > 0 && rng.chance(0.6) ? rng.pick(free) : pickWording(draw, asksFor(kind));
  const words = { q: placeName(rng), n: personName(rng), m: rng.int(2, 90), w: anyWord(rng) };
  let prompt = asTyped(rng, say(rng, wording, values), false);
  if (rng.chance(0.35)) prompt = `${say(rng, rng.pick(before), words)} ${prompt}`;
  if (/[.?!]$/.test(prompt) && rng.chance(0.25)) prompt += ` ${say(rng, rng.pick(after), words)}`;
  const reply: Message = { role: "assistant", content: null, tool_calls: [call(name, args)] };
  return {
    family: "tool-call",
    messages: [user(prompt), reply],
    tools: rng.shuffle(offered),
    check: { kind: "tool", name, arguments: args },
  };
}

// Freely worded tool calls: loose wordings among other talk, similar tools to confuse with the right one, and values of several
// words that must be copied whole.

import { freeToolAsksOf, sentences } from "./bank.ts";
import { type Conversation, type Message, system, type Tool, user } from "./conversation.ts";
import { anyWord, personName, phrase, placeName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { toolKinds } from "./tool-bank.ts";
import { addOptional } from "./tool-extras.ts";
import type { ParameterKind, ToolKind } from "./tool-parts.ts";
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
  ["create_invoice", "transfer_money", "record_expense", "check_balance", "donate"],
  ["calculate_tip", "convert_units", "convert_currency", "multiply"],
  ["book_hotel", "rent_car", "book_table", "buy_ticket", "cancel_booking"],
  ["find_train", "book_flight", "track_flight", "order_taxi", "get_distance"],
  ["get_distance", "get_directions", "convert_units"],
  ["get_air_quality", "get_weather", "get_forecast", "get_news"],
  ["find_place", "find_restaurant", "find_job", "get_directions", "book_hotel"],
  ["book_appointment", "schedule_meeting", "add_event", "add_birthday", "set_reminder"],
  ["log_workout", "log_meal", "record_expense", "set_timer"],
  ["get_recipe", "order_pizza", "log_meal", "find_restaurant", "brew_coffee"],
  ["create_ticket", "close_ticket", "assign_task", "post_update"],
  ["add_contact", "call_person", "send_message", "create_user", "add_birthday"],
  ["delete_file", "rename_file", "move_file", "share_file"],
  ["create_user", "get_user", "query_table", "generate_password"],
  ["post_update", "send_message", "create_note", "send_email"],
  ["lock_door", "unlock_door", "turn_off_light", "start_vacuum"],
  ["start_vacuum", "water_plants", "feed_pet", "brew_coffee", "set_mode"],
  ["set_brightness", "set_volume", "turn_on_light", "check_battery"],
  ["play_podcast", "play_music", "get_news", "find_book"],
  ["get_score", "get_news", "web_search", "buy_ticket"],
  ["find_book", "reserve_book", "movie_info", "order_product"],
  ["enroll_student", "record_grade", "assign_task", "create_user"],
  ["check_stock", "get_price", "order_product", "apply_coupon", "return_item"],
  ["return_item", "track_package", "cancel_booking", "get_user"],
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
  "what happens": (rng) =>
    rng.pick([
      () => `${rng.pick(["lunch", "coffee", "a walk", "breakfast"])} with ${personName(rng)}`,
      () => `${personName(rng)}'s ${rng.pick(["birthday", "wedding", "concert", "exam"])}`,
      () => `${anyWord(rng)} ${rng.pick(["meeting", "class", "party", "training", "fair"])}`,
    ])(),
  "the subject": (rng) =>
    rng.pick([
      () => `the ${anyWord(rng)} ${rng.pick(["plan", "list", "report", "problem"])}`,
      () => `your ${anyWord(rng)}`,
      () => phrase(rng),
    ])(),
  "what to remember": (rng) =>
    say(
      rng,
      "{{call|meet|pick up|write to|thank} $n|{wash|fix|return|clean|sell|find} the $w|{buy|order|bring} {two |some |}$w|check the $w and the $v}",
      { n: personName(rng), w: anyWord(rng), v: anyWord(rng) },
    ),
  "what to play": (rng) =>
    rng.pick([
      () => `songs by ${personName(rng)}`,
      () => `${anyWord(rng)} music`,
      () => `the ${anyWord(rng)} ${rng.pick(["song", "album", "waltz", "playlist"])}`,
    ])(),
  "the company": (rng) => `${personName(rng)} ${rng.pick(["Motors", "Foods", "Energy", "Bank", "Systems"])}`,
  "the program": (rng) => `${anyWord(rng)} ${rng.pick(["editor", "player", "viewer", "manager"])}`,
  "the task": (rng) => `${rng.pick(["check", "paint", "sort", "order", "pack"])} the ${anyWord(rng)}`,
  "the dish": (rng) => `${anyWord(rng)} ${rng.pick(["soup", "pie", "curry", "salad"])}`,
  "the topic": (rng) => `${anyWord(rng)} ${rng.pick(["prices", "in schools", "laws", "research"])}`,
  "the course": (rng) => `${anyWord(rng)} for beginners`,
  "the folder": (rng) => `${rng.pick(["My", "New", "Old"])} ${anyWord(rng)}`,
  "the problem in a few words": (rng) =>
    `the ${anyWord(rng)} is ${rng.pick(["broken", "missing", "too slow", "gone"])}`,
  "what to post": (rng) => sentence(rng),
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

/** Talk around the request. Its names, places and numbers are not arguments. */
const before: readonly string[] = [
  "{I'm|We're|I am} in $q {right now|today|this week}.",
  "$n {is here with me|says hello|is waiting for me|just left}.",
  "{I have|There are} {only |about |}$m {things to do|mails to read|guests coming|pages left}.",
  "{Sorry to bother you again|Good to have you|You are a great help|Long day}.",
  "{I was talking to|I just met|Yesterday I saw} $n {in $q|about the $w}.",
  "{My hands are full|I am in the car|I'm cooking|I can't type much}.",
  "{So|Well|Right}, {listen|here is the thing}:",
  "{My|Our} {bus|train|neighbor|cat|phone|printer} {is late again|drives me mad|makes strange noises|is so slow today}.",
  "{I slept badly|I had a lovely morning|We had a big party|It was a busy week|I am finally home}.",
  "{Remember|You remember} $n{, my old friend|, the one with the $w|}? {We talked for hours|We met again|No news there}.",
  "{It took me|I walked|I waited} $m minutes {to get here|yesterday|this morning}.",
  "{The|That} $w {was great|is still here|was not cheap|is for $n}.",
  "{First of all, thanks for yesterday|You helped me a lot last time|I know you are good at this}.",
  "{I thought about it for a while|I talked it over with $n|My mind is made up}.",
  "{Before I go to $q|Before $n comes|Before the $w starts}, {one thing|a small job|one request}:",
];
const after: readonly string[] = [
  "$n {asked me to do this|wants to know|told me to ask you}.",
  "{I'm in a hurry|I am driving|My phone is almost empty|It is urgent}.",
  "{I promised it to|It is for} $n.",
  "{Thanks|Thank you|You are the best|Cheers}{.|!}",
  "{Then I can|After that I will} {go to bed|relax|visit $n|go back to the $w}.",
  "{I am in $q and|I have the $w here and} {have no computer|can't do it myself}.",
  "{You know how forgetful I am|I always forget such things|Last time it went wrong}.",
  "{No questions, please|Just do it|That is all for now|Nothing else today}.",
];
const orders: readonly string[] = [
  "{You are a helpful assistant|You are a friendly helper|You help people with their day}.",
  "{Use|Call} {the|a} {right |fitting |}tool {when|if} {it helps|one fits|it is needed}.",
  "You {are|work as} {the assistant|a helper} of {$n|a small company|a busy family|a hotel|a shop}.",
];
const numberWords = [
  "",
  "",
  "two",
  "three",
  "four",
  "five",
  "six",
  "seven",
  "eight",
  "nine",
  "ten",
  "eleven",
  "twelve",
];

/** A value as people say it: synonyms for an option, small numbers in words. */
function spoken(rng: Rng, parameter: ParameterKind, value: string | number, loosely: boolean): string | number {
  if (typeof value === "number")
    return numberWords[value] && !/number|code/.test(parameter.about) && rng.chance(0.2)
      ? (numberWords[value] as string)
      : value;
  const others = parameter.said?.[value];
  return loosely && others !== undefined ? rng.pick(others) : value;
}

function kinOf(rng: Rng, kind: ToolKind): ToolKind[] {
  const groups = kin.filter((group) => group.includes(kind.names[0] as string));
  const mates = [...new Set(groups.flat())].filter((name) => name !== kind.names[0]);
  return rng.sample(mates, rng.int(1, 3)).map((name) => toolKinds.find((other) => other.names[0] === name) as ToolKind);
}

export function freeTool(draw: Draw): Conversation {
  const { rng } = draw;
  const kind = rng.pick(toolKinds);
  const firstName = kind.names[0] as string;
  const { tool, spelling } = offer(rng, kind);
  const name = tool.function.name;
  const taken = new Set(kind.names);
  const offered: Tool[] = [tool];
  for (const mate of kinOf(rng, kind)) {
    const { tool: other } = offer(rng, mate);
    if (taken.has(other.function.name)) continue;
    taken.add(other.function.name);
    if (rng.chance(0.25)) addOptional(rng, mate.names[0] as string, other);
    offered.push(other);
  }
  if (rng.chance(0.3)) offered.push(...others(rng, [...taken], 1));
  const values: Record<string, string | number> = {};
  do {
    for (const [variable, parameter] of Object.entries(kind.parameters)) values[variable] = valueFor(rng, parameter);
  } while (splitOf(`tool:${Object.values(values).join("/")}`) !== draw.split && rng.chance(0.98));
  const args: Record<string, unknown> = {};
  for (const [variable, key] of Object.entries(spelling)) args[key] = values[variable];
  const free = freeToolAsksOf(firstName);
  const loosely = free.length > 0 && rng.chance(0.6);
  const wording = loosely ? rng.pick(free) : pickWording(draw, asksFor(kind));
  const words = { q: placeName(rng), n: personName(rng), m: rng.int(2, 90), w: anyWord(rng) };
  const said: Record<string, string | number> = {};
  for (const [variable, parameter] of Object.entries(kind.parameters))
    said[variable] = spoken(rng, parameter, values[variable] as string | number, loosely);
  let prompt = asTyped(rng, say(rng, wording, said), false);
  const added = rng.chance(0.35) ? addOptional(rng, firstName, tool) : undefined;
  if (added !== undefined && rng.chance(0.5)) {
    args[added.key] = added.value;
    prompt = `${prompt}${/[.?!]$/.test(prompt) ? "" : "."} ${say(rng, rng.pick(added.asks), { x: added.value })}`;
  }
  const lead = rng.weighted([
    [0, 55],
    [1, 28],
    [2, 12],
    [3, 5],
  ]);
  for (const [i, text] of rng.sample(before, lead).entries())
    if (i === 0 || text.endsWith(".")) prompt = `${say(rng, text, words)} ${prompt}`;
  if (/[.?!]$/.test(prompt) && rng.chance(0.25)) prompt += ` ${say(rng, rng.pick(after), words)}`;
  const reply: Message = { role: "assistant", content: null, tool_calls: [call(name, args)] };
  const messages = [user(prompt), reply];
  if (rng.chance(0.1)) messages.unshift(system(say(rng, rng.pick(orders), words)));
  return {
    family: "tool-call",
    messages,
    tools: rng.shuffle(offered),
    check: { kind: "tool", name, arguments: args },
  };
}

// Optional arguments of tools. The call has them only if the request names them.

import { membersOf } from "./bank.ts";
import type { Tool } from "./conversation.ts";
import { anyWord, personName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { choice, clock, int, type ParameterKind, str } from "./tool-parts.ts";

interface Extra {
  /** First names of the tools that can have it. */
  tools: string;
  parameter: ParameterKind;
  /** How people ask for it, in a sentence after the request; $x is the value. */
  asks: string[];
}

const extras: readonly Extra[] = [
  {
    tools: "web_search get_news find_restaurant find_job find_place get_recipe find_train find_book",
    parameter: int("limit max_results count", "how many results at most", 2, 20),
    asks: [
      "{At most|No more than|Not more than} $x results{, please|}.",
      "{Show|Give} me $x {results|of them}.",
      "$x results are enough.",
    ],
  },
  {
    tools: "web_search get_news movie_info get_recipe find_book define_word",
    parameter: str("language lang", "language of the answer", (rng) => rng.pick(membersOf("languages"))),
    asks: ["{I want it|It should be|Please answer} in $x.", "In $x{, please|, if you can}.", "The language is $x."],
  },
  {
    tools: "book_table book_hotel order_pizza order_taxi book_appointment order_product buy_ticket",
    parameter: str("note comment notes", "a wish of the guest", (rng) =>
      rng.pick(["quiet place", "no onions", "two children", "ring the bell", "near the window", "I have a dog"]),
    ),
    asks: ['{Add the|Please add the|With the} {note|comment} "$x".', "{Note|Comment|Special wish}: $x."],
  },
  {
    tools: "get_weather get_forecast set_temperature",
    parameter: choice("unit units", "unit of the temperature", ["celsius", "fahrenheit"]),
    asks: ["{I need it in|Use|In} $x{, please|}.", "{My family thinks in|The unit is} $x."],
  },
  {
    tools: "set_timer set_alarm set_reminder create_note",
    parameter: str("label title name", "a name for it", (rng) => `${anyWord(rng)} ${anyWord(rng)}`),
    asks: ['{Call|Name} it "$x".', 'The {name|label} is "$x".'],
  },
  {
    tools: "set_alarm set_reminder add_event water_plants schedule_meeting",
    parameter: choice("repeat frequency", "how often it comes again", ["daily", "weekly", "monthly"]),
    asks: ["{Repeat it|Do it|I need it} $x.", "And {make it|let it be} $x."],
  },
  {
    tools: "send_email share_file create_invoice",
    parameter: str("cc copy_to", "who gets a copy", personName),
    asks: ["{Send a copy to|Copy|Put in copy:} $x{, please|}.", "$x {should get|gets} a copy{, too|}."],
  },
  {
    tools: "play_music play_podcast",
    parameter: str("device speaker", "where to play it", (rng) =>
      rng.pick(["kitchen speaker", "phone", "living room TV", "car radio", "headphones"]),
    ),
    asks: ["{Play it on|Use|Through} the $x{, please|}.", "I want to hear it {on|over} the $x."],
  },
  {
    tools: "book_flight find_train",
    parameter: choice("class seat_class", "class of the seat", ["economy", "business", "first"]),
    asks: ["{I want|Make it|I fly|Book} $x class.", "In $x class{, please|}."],
  },
  {
    tools: "transfer_money donate",
    parameter: choice("account from_account", "where the money comes from", ["checking", "savings"]),
    asks: ["{Take it|Use the money} from {my |}$x.", "{From|Use} my $x account."],
  },
  {
    tools: "order_product turn_on_light check_stock",
    parameter: str("color colour", "the color", (rng) => rng.pick(membersOf("colors"))),
    asks: ["{The color should be|I want the color|Make the color} $x.", "In $x{, please|}."],
  },
  {
    tools: "add_event assign_task create_ticket log_workout record_expense",
    parameter: str("time at", "time of the day", clock),
    asks: ["{It is|The time is|That is} at $x.", "At $x{, to be exact|, please|}."],
  },
];

const extrasOf = (firstName: string): readonly Extra[] =>
  extras.filter((extra) => extra.tools.split(" ").includes(firstName));

export interface Added {
  key: string;
  value: string | number;
  asks: string[];
}

/** Adds an optional argument to an offered tool; undefined if there is none for it. */
export function addOptional(rng: Rng, firstName: string, tool: Tool): Added | undefined {
  const possible = extrasOf(firstName);
  const parameters = tool.function.parameters;
  if (possible.length === 0 || parameters === undefined) return undefined;
  const { parameter, asks } = rng.pick(possible);
  const key = parameter.keys.find((one) => parameters.properties[one] === undefined);
  const abouts = Object.values(parameters.properties).map((property) => property.description);
  if (key === undefined || abouts.includes(parameter.about)) return undefined;
  const schema: Record<string, unknown> = { type: parameter.type };
  if (parameter.enum !== undefined) schema.enum = parameter.enum;
  if (rng.chance(0.6)) schema.description = `${parameter.about}${rng.pick(["", "", " (optional)", ", optional"])}`;
  parameters.properties[key] = schema;
  return { key, value: parameter.make(rng), asks };
}

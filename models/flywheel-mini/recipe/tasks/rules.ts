// Standing instructions in the system or developer message: a tone, a form, a persona, a fixed ending. They are added to
// ordinary exchanges of other families.

import { lexicon, names } from "./bank.ts";
import { assistant, type Conversation, type Message, user } from "./conversation.ts";
import { oneLine } from "./json-keys.ts";
import type { Rng } from "./rng.ts";
import type { Draw } from "./split.ts";
import { say } from "./wording.ts";

interface Rule {
  orders: string[];
  apply(reply: string): string;
}

const stripped = (reply: string) => reply.replace(/[.!?]+$/, "");
const firstSentence = (reply: string) => /^.*?[.!?](?= |$)/s.exec(reply)?.[0] ?? reply;

const rules: readonly Rule[] = [
  {
    orders: [
      "{Always |}{answer|reply|respond|write} in {uppercase|capital letters|all caps}{.|}",
      "{Use only|Write only in} capital letters{.|}",
    ],
    apply: (reply) => reply.toUpperCase(),
  },
  {
    orders: [
      "{Always |}{answer|reply|write} in {lowercase|small letters}{.|}",
      "{Never use|Do not use} capital letters{.|}",
    ],
    apply: (reply) => reply.toLowerCase(),
  },
  {
    orders: ['{End|Finish} {every|each} {reply|answer} with {an exclamation mark|"!"}{.|}'],
    apply: (reply) => `${stripped(reply)}!`,
  },
  {
    orders: ['{Start|Begin} {every|each} {reply|answer} with {the word |}"Sure"{.|}'],
    apply: (reply) => `Sure. ${reply}`,
  },
  {
    orders: ['{Start|Begin} {every|each} {reply|answer} with {the word |}"Answer" and a colon{.|}'],
    apply: (reply) => `Answer: ${reply}`,
  },
  {
    orders: ['{End|Finish} {every|each} {reply|answer} with {the words |}"Have a nice day"{.|}'],
    apply: (reply) => `${reply} Have a nice day.`,
  },
  {
    orders: [
      "{Answer|Reply} in one sentence{.|}",
      "{Use|Write} only one sentence{.|}",
      "{Be brief|Keep it short|Give short answers|Be concise}{.|}",
      "Your answers are short.",
    ],
    apply: firstSentence,
  },
  { orders: ["{Put|Write} {every|each} {reply|answer} in quotation marks{.|}"], apply: (reply) => `"${reply}"` },
  {
    orders: ["You are a pirate{.|} {Talk like one{.|}|}", "{Talk|Answer} like a pirate{.|}"],
    apply: (reply) => `Arr! ${reply}`,
  },
  { orders: ["You are a cat{.|}", "{Talk|Answer} like a cat{.|}"], apply: (reply) => `Meow! ${reply}` },
  {
    orders: [
      "You are a {helpful|friendly|kind|polite|good|small} {assistant|helper|model|bot}{.|}",
      "You are {helpful|friendly|kind}{.|}",
      "Be {helpful|friendly|kind|polite}{.|}",
      "You help people{.|}",
      "{You are flywheel-mini|You are the bundled model of Flywheel}, a helpful assistant.",
      "You are a helpful assistant.",
    ],
    apply: (reply) => reply,
  },
  { orders: ["You are a helpful assistant."], apply: (reply) => reply },
];

const words =
  "Right Okay Listen Indeed Hello Well Captain Boss Friend Alright Howdy Roger Sir Yes Hey Hooray Dear Bravo Ready Gladly".split(
    " ",
  );
const closings = [
  "Over",
  "Take care",
  "Stay curious",
  "That is all",
  "At your service",
  "See you soon",
  "Peace",
  "Thank you",
  "Keep smiling",
  "The end",
  "Good luck",
];
const signs = ["***", "-", ">", "~", "=>", "#", "+", "Bot:", "Reply:", "Note:"];

/** Rules about any word, closing, sign or JSON key, so that the model must read them. */
const made: readonly ((rng: Rng) => Rule)[] = [
  (rng) => {
    const word = rng.chance(0.7) ? rng.pick(words) : rng.pick(lexicon);
    return {
      orders: [
        `{Start|Begin|Open} {every|each} {reply|answer|response} with {the word |}"${word}"{.|}`,
        `{The first word of|The opening of} {every|each} {reply|answer} {is|must be} "${word}"{.|}`,
        `{Always|You always} {say|write} "${word}" {first|before you answer}{.|}`,
      ],
      apply: (reply) => `${word}. ${reply}`,
    };
  },
  (rng) => {
    const closing = rng.pick(closings);
    return {
      orders: [
        `{End|Finish|Close} {every|each} {reply|answer|response} with {the words |}"${closing}"{.|}`,
        `{Always|You always} {say|write} "${closing}" {at the end|last}{.|}`,
        `{The last words of|The end of} {every|each} {reply|answer} {must be|should be} "${closing}"{.|}`,
      ],
      apply: (reply) => `${reply} ${closing}.`,
    };
  },
  (rng) => {
    const name = rng.pick(names);
    return {
      orders: [
        `{Sign|End} {every|each} {reply|answer} {as|with the name} ${name}{.|}`,
        `{Put|Write} the name ${name} {at the end of|behind|under} {every|each} {reply|answer}{.|}`,
      ],
      apply: (reply) => `${reply} - ${name}`,
    };
  },
  (rng) => {
    const name = rng.pick(names);
    return {
      orders: [
        `{The user is called|The user's name is|You talk to} ${name}{. Greet them by name in every reply.|. Start every reply with a greeting to them.|. Always greet them by name.}`,
      ],
      apply: (reply) => `Hi ${name}. ${reply}`,
    };
  },
  (rng) => {
    const sign = rng.pick(signs);
    return {
      orders: [
        `{Put|Write} "${sign}" {before|in front of} {every|each|your} {reply|answer}{.|}`,
        `{Your replies|All replies|Your answers} {begin|start} with "${sign}"{.|}`,
      ],
      apply: (reply) => `${sign} ${reply}`,
    };
  },
  (rng) => {
    const key = rng.chance(0.6) ? rng.pick(["answer", "reply", "text", "message", "output"]) : rng.pick(lexicon);
    return {
      orders: [
        `{Always answer|Answer|Reply|Respond} {in|with} JSON {with|that has|using} {the key|one key,|the single key} "${key}"{.|}`,
        `{Every|Each} {reply|answer} is {a JSON object|JSON} with {only |}the {key|field|property} ${key}{.|}`,
        `{Wrap|Put|Pack} {your|every} {reply|answer} in JSON under {the key |}"${key}"{.|}`,
      ],
      apply: (reply) => oneLine({ [key]: reply }),
    };
  },
];

/** An exchange of another family under a rule. The rule also applies to a second question. */
export function standingOrder(draw: Draw, inner: (draw: Draw) => Conversation): Conversation {
  const { rng } = draw;
  const rule = rng.chance(0.5) ? rng.pick(rules) : rng.pick(made)(rng);
  const turns = rng.weighted([
    [1, 4],
    [2, 2],
  ]);
  const role = rng.chance(0.25) ? "developer" : "system";
  const messages: Message[] = [{ role, content: say(rng, rng.pick(rule.orders)) }];
  for (let turn = 0; turn < turns; turn++) {
    const exchanged = inner(draw).messages.filter((message) => message.role === "user" || message.role === "assistant");
    for (const message of exchanged) {
      messages.push(
        message.role === "assistant" ? { ...message, content: rule.apply(message.content as string) } : message,
      );
    }
  }
  return { family: "standing-order", messages };
}

const characters: readonly (readonly [string, string, string])[] = [
  ["cook", "I am a cook, and I make meals for hungry guests.", "I work in a warm kitchen."],
  ["gardener", "I am a gardener, and I take care of plants.", "I work outside among flowers."],
  ["sailor", "I am a sailor, and I travel over the sea.", "I live on a ship."],
  ["teacher", "I am a teacher, and I help children to learn.", "I work in a school."],
  ["wizard", "I am a wizard, and I know many spells.", "I live in a tall tower."],
  ["detective", "I am a detective, and I look for clues.", "I work where the mystery is."],
  ["farmer", "I am a farmer, and I grow food.", "I live on a farm."],
  ["robot", "I am a robot, and I follow orders.", "I stand in a workshop."],
];

/** "You are Anna, a cook." Then who are you, what do you do, where. */
export function persona(draw: Draw): Conversation {
  const { rng } = draw;
  const [job, work, where] = rng.pick(characters);
  const name = rng.pick(names);
  const messages: Message[] = [
    {
      role: "system",
      content: say(rng, "{You are|Your name is|Pretend to be|You play} $name{, a|. You are a} $job{.|}", { name, job }),
    },
  ];
  const questions: [string, string][] = [
    [
      "{Who are you|What is your name|What's your name|Introduce yourself}{?|.}",
      `{I am|My name is} ${name}{.|, a ${job}.}`,
    ],
    ["{What do you do|What is your job|What are you|What is your work}?", work],
    ["{Where do you work|Where do you live|Where are you}?", where],
    ["{Hello|Hi|Good morning}{!|.}", `{Hello|Hi}! I am ${name}[, the ${job}]. How can I help you?`],
  ];
  for (const [ask, answer] of rng.sample(questions, rng.int(1, 3)))
    messages.push(user(say(rng, ask)), assistant(say(rng, answer)));
  return { family: "standing-order", messages };
}

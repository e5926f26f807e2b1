// The system message sets the JSON form, and the user just talks. Every reply is an object with those keys.

import { shortAnswers, topics } from "./bank.ts";
import { assistant, type Conversation, type Message, user } from "./conversation.ts";
import { keyList, oneLine } from "./json-keys.ts";
import { anyJoint, filled, listed, named, someKeys, suitedKeys } from "./json-parts.ts";
import { anyWord, personName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { talk, topic } from "./talk.ts";
import { asTyped, say } from "./wording.ts";

/** $k the keys in a sentence, $q the keys as a plain list, $l the keys as a list of their own. */
const orders: readonly string[] = [
  "{You only speak JSON|You always answer in JSON|Every reply is JSON|Reply with JSON only|Answer only in JSON}. {The keys are|Use the keys|Keys:|Fields:|Use the fields} $q{.|}",
  "{Every|Each} {answer|reply|response} {must be|is|has to be} {a|one} JSON object with $k{.|}",
  "{You are|You work as} {a JSON API|a data service|a machine|the backend of an app|a bot}{. Return|. Output|. You send} {a JSON object|JSON|one JSON object} with $k{.|}",
  "{Respond|Answer|Reply} {using|in|with} this JSON {shape|schema|format|form}:$l",
  "{Never write plain text|No plain text|Do not write sentences outside JSON}. {Always send|Always return|Only send} JSON with {the keys |the fields |}$q{.|}",
  "{Your output is parsed by a program|A program reads your replies}{, so|. So} {write|send|return} {only |nothing but }JSON with {the |}{properties|attributes|keys|columns} $q{.|}",
  "{You are a helpful assistant|You are a friendly helper}{ that| who} {answers|replies|responds} in JSON with $k{.|}",
  "{Output format|Format|Reply format}: JSON{. Keys|, keys|; fields|. Entries|. Properties}: $q{.|}",
  "{Whatever the user says|No matter what is asked|For every message}, {answer|reply|respond} with {a JSON object|JSON} {that has|with|containing} $k{.|}",
  "{Return|Give back|Produce} JSON {only|and nothing else}:$l",
  "{Put|Wrap|Pack} {every|each|your} {answer|reply} {in|into} {a JSON object|JSON} with {the keys |the key names |the fields |}$q{.|}",
  "JSON {mode|only}. {Required keys|Keys|Required fields|Slots}: $q{.|}",
];
const replyKeys = ["answer", "reply", "response", "text", "message", "result", "output", "content"];
const sideKeys: Readonly<Record<string, (rng: Rng, asked: string) => unknown>> = {
  mood: (rng) => rng.pick(["happy", "calm", "friendly"]),
  tone: (rng) => rng.pick(["friendly", "warm", "kind"]),
  language: () => "English",
  confidence: (rng) => rng.pick(["high", "medium"]),
  sure: () => true,
  question: (_, asked) => asked,
  input: (_, asked) => asked,
  status: () => "ok",
  ok: () => true,
  score: (rng) => rng.int(1, 10),
};

/** Requests that say nothing about the form; $s a thing, $w a word, $n a name. */
const wishes: readonly string[] = [
  "{Tell me about|What about|Give me|Describe|I want|How about|Make one for|Do|Let's take|Now} $s{.|, please.|}",
  "{I met|I saw|I heard about|I dreamed of|Yesterday I found} $s{.| today.| in the park.}",
  "{One for|Another one:|Next:|Please do one for|The next one is} $s{.|}",
  "{My friend|My sister|My boss} $n {likes|wants|is looking for|has} $s{.|}",
  "{Do you know|Can you think of|Have you seen} $s?",
  "{It is a rainy day here|I like $w|My name is $n|I am $n and I am bored|The $w is ready|We talk about $w}{.|}",
  "{Hello|Hi|Hey}, {it is $n|this is $n|$n here}{.|!}[ {I need|I want} $s.]",
  "{Something about|Anything on|Surprise me with} $s{.|}",
];

interface Turn {
  asked: string;
  answer: string;
}

function turn(draw: Draw): Turn {
  const { rng } = draw;
  if (rng.chance(0.4)) {
    const [question, word, sentence] = rng.pick(shortAnswers);
    return { asked: asTyped(rng, question), answer: rng.chance(0.5) ? word : sentence };
  }
  const [first, second] = (rng.chance(0.65) ? talk(draw) : topic(draw)).messages.filter(
    (message) => message.role === "user" || message.role === "assistant",
  );
  return { asked: first?.content ?? "", answer: second?.content ?? "" };
}

export function jsonOrder(draw: Draw): Conversation {
  const { rng } = draw;
  const count = rng.weighted([
    [1, 3],
    [2, 5],
    [3, 3],
  ]);
  const answering = rng.chance(0.55);
  let keys: string[];
  let thing: string | undefined;
  const replyKey = rng.chance(0.75)
    ? rng.pick(replyKeys)
    : anyJoint(rng)([rng.pick(["short", "your", "final", "main", "bot"]), rng.pick(replyKeys)]);
  do {
    thing = undefined;
    if (answering) {
      const sides = [...rng.sample(Object.keys(sideKeys), count - 1)];
      keys = [replyKey, ...sides];
      if (rng.chance(0.35)) keys = rng.shuffle(keys);
    } else if (rng.chance(0.4)) ({ thing, keys } = suitedKeys(rng, count + 1));
    else keys = someKeys(rng, count);
  } while (!answering && splitOf(`json:${[...keys].sort().join()}`) !== draw.split);
  const order = say(rng, pickWording(draw, orders), {
    k: named(rng, keys),
    q: keyList(rng, keys),
    l: listed(rng, keys),
  });
  const messages: Message[] = [{ role: rng.chance(0.2) ? "developer" : "system", content: order }];
  for (let left = rng.chance(0.3) ? 2 : 1; left > 0; left--) {
    const words = { s: thing ?? rng.pick(topics).single, w: anyWord(rng), n: personName(rng) };
    const { asked, answer } =
      answering || rng.chance(0.4)
        ? turn(draw)
        : { asked: asTyped(rng, say(rng, pickWording(draw, wishes), words)), answer: "" };
    const reply: Record<string, unknown> = answering ? {} : filled(rng, keys);
    if (answering) for (const key of keys) reply[key] = key === replyKey ? answer : sideKeys[key]?.(rng, asked);
    messages.push(user(asked), assistant(oneLine(reply)));
  }
  return { family: "json-keys", messages, check: { kind: "json", keys } };
}

// Small talk, identity, advice and everyday topics: plain chat.

import { capitalised, type Intent, openIntents, type Topic, talkIntents, topics } from "./bank.ts";
import { assistant, type Conversation, exchange, user } from "./conversation.ts";
import { type Draw, pickWording } from "./split.ts";
import { asTyped, say } from "./wording.ts";

const identity = new Set(["who", "human", "maker", "size", "can-do", "limits", "flywheel", "hello", "how-are-you"]);
const weighted: readonly (readonly [Intent, number])[] = [
  ...talkIntents.map((intent) => [intent, identity.has(intent.name) ? 8 : 1] as const),
  ...openIntents.map((intent) => [intent, 0.8] as const),
];

export function talk(draw: Draw): Conversation {
  const intent = draw.rng.weighted(weighted);
  const prompt = asTyped(draw.rng, say(draw.rng, pickWording(draw, intent.prompts)));
  return exchange("talk", prompt, say(draw.rng, draw.rng.pick(intent.replies)));
}

const askDefinition = [
  "{What is|What's} $single?",
  "{Explain|Please explain|Can you explain} {what $single is|to me what $single is}{.|?}",
  "{Define|Describe} $single[ in one sentence| for a child| in simple words]{.|}",
  "{Tell me|Do you know|Can you tell me} what $single is{.|?}",
  "what is $single",
  "{How would you describe|How do you explain} $single[ to a child]?",
  'What does {the word|the term} "$bare" mean?',
  "{Give me|I need} {a short|a simple} {definition|explanation} of $single{.|, please.}",
  "I {don't|do not} know what $single is. Can you explain?",
];
const askMore = [
  "{Tell me|Please tell me|Can you tell me} {about|something about|more about|a bit about} $general{.|?}",
  "{What do you know|What can you tell me|What should I know} about $general?",
  "{Give me some|I want some|Show me some} information {about|on} $general{.|}",
  "{Write|Say} {a few|some|two or three} sentences about $general{.|}",
  "{My class is reading|We are reading|I have to write|My homework is} about $general. {What can you say|Can you help me|What is important}?",
  "$general{: tell me about that|: what do you know|, please: some facts}{.|?|}",
  "{I want to learn|I would like to know more|Teach me something} about $general{.|}",
  "{Let's|Let us|Can we} talk about $general{.|?}",
];
const askCount = [
  "{Write|Say|Give me|Make} $count {short |simple |}sentences about $general{.|, please.|}",
  "{Describe|Explain} $single in $count sentences{.|}",
  "$count sentences about $general{, please|}{.|}",
  "{I need|I want|I would like} $count {short |}sentences about $general{.|}",
  "{Tell me|Can you tell me} about $general in $count sentences{.|?}",
  "{What can you say|What do you know} about $general? {Use|Write} $count sentences{.|}",
];
const askFact = [
  "{Tell me|Give me|Say|Share} {a|one|an interesting|a fun|one small} fact about $general{.|}",
  "{Do you know|What is} {an interesting fact|something interesting|a fun fact} about $general?",
  "{Write|Give me|Make} {a|one} sentence about $general{.|}",
  "{Tell me one thing|What is one thing you know} about $general{.|?}",
  "{Say|Tell me} something {interesting |nice |true |}about $general{.|}",
  "{Surprise me with|I'd like to hear} a fact about $general{.|}",
];
const statement = [
  "I {like|love|really like} $general{.|!}",
  "{Do you like|What do you think about|What do you think of|How do you like} $general?",
  "{My favorite thing is|I am interested in|I was thinking about} $general{.|}",
];
const followUp = [
  "Tell me more.",
  "{More|Go on|Anything else|What else}{?|.}",
  "{Another fact|One more|And another one}[, please].",
];

export function topic(draw: Draw): Conversation {
  const { rng } = draw;
  const about = rng.pick(topics);
  const values = { single: about.single, general: about.general, bare: about.single.replace(/^(an?|the) /, "") };
  const facts = rng.shuffle(about.facts);
  const style = rng.weighted([
    ["definition", 4],
    ["more", 4],
    ["count", facts.length > 1 ? 2 : 0],
    ["fact", 3],
    ["statement", 2],
  ] as const);
  const used = { definition: rng.int(0, 1), more: 2, count: rng.int(1, 2), fact: 1, statement: 1 }[style];
  const wording = { definition: askDefinition, more: askMore, count: askCount, fact: askFact, statement }[style];
  const count = rng.chance(0.7) ? ["one", "two", "three"][used] : used + 1;
  const prompt = asTyped(rng, say(rng, pickWording(draw, wording), { ...values, count: count ?? "" }));
  const conversation = exchange("topic", prompt, reply(draw, style, about, facts.slice(0, used)));
  const next = facts[used];
  if (next !== undefined && rng.chance(0.25)) {
    conversation.messages.push(user(say(rng, rng.pick(followUp))), assistant(next));
  }
  return conversation;
}

function reply(draw: Draw, style: string, about: Topic, facts: string[]): string {
  const { rng } = draw;
  if (style === "definition" || style === "more" || style === "count") return [about.definition, ...facts].join(" ");
  if (style === "fact") return facts[0] ?? about.definition;
  const opener = say(rng, "{That is a nice topic|That is interesting|I like to talk about that|Good choice}{!|.}");
  const closer = say(rng, "{What do you like about it?|What do you think?|Tell me more.|Do you know a lot about it?}");
  return `${opener} ${facts[0] ?? about.definition}${rng.chance(0.5) ? ` ${closer}` : ""}`;
}

const askKind = [
  "What kind of thing is $single?",
  "{Is $single|Would you say $single is} {an animal, a place or something else|a kind of $kind or something else}?",
  "{Which|What} {category|group} does $single belong to?",
];

/** "What kind of thing is a dog?", answered in a full sentence. */
export function topicKind(draw: Draw): Conversation {
  const about = draw.rng.pick(topics);
  const prompt = say(draw.rng, draw.rng.pick(askKind), { single: about.single, kind: about.kind });
  const article = /^[aeiou]/.test(about.kind) ? "an" : "a";
  const verb = about.single === "shoes" ? "are" : "is";
  return exchange("topic", asTyped(draw.rng, prompt), `${capitalised(about.single)} ${verb} ${article} ${about.kind}.`);
}

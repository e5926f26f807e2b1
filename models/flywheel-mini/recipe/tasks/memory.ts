// Remembering what the user said earlier in the conversation: a name, a number, a favourite, with other talk in between.

import { asksOf, membersOf } from "./bank.ts";
import { assistant, type Conversation, type Message, user } from "./conversation.ts";
import { anyWord, personName, placeName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { asTyped, say } from "./wording.ts";

interface Slot {
  make(rng: Rng): string;
  tells: string[];
  acks: string[];
  asks: string[];
  answers: string[];
}

const generalAck = [
  "{Okay|Good|Alright|Got it|Thanks}, {I will remember that|I noted that|noted}.",
  "{Thanks for telling me|Good to know}{.|!}",
];

const slots: Record<string, Slot> = {
  name: {
    make: personName,
    tells: [
      "{My name is|I am|I'm|You can call me|Call me|Please call me} $v{.|!|}",
      "{Hi|Hello|Hey}{,|!} {my name is|I am|I'm|this is} $v{.|!|}",
      "{My friends call me|People call me|Everyone calls me} $v{.|}",
      "{I'm|I am} $v, {nice to meet you|how are you|and I have a question}{.|!}",
      "{The name's|The name is|It's} $v{.|}",
      "{Remember my name|Remember that my name is}{: $v| $v}{.|}",
      "$v is my name{.|}",
      "{Let me introduce myself|First of all}: {I am|my name is} $v{.|}",
      ...asksOf("name-tell"),
      ...asksOf("name-tell-parts"),
    ],
    acks: [
      "{Hello|Hi|Nice to meet you}, $v! {How can I help you?|What can I do for you?|How are you?}",
      "{Nice to meet you|Good to meet you|Welcome}, $v{.|!}",
      "Hi $v! {It is nice to meet you.|What would you like to do?}",
    ],
    asks: [
      "{What is|What's} my name?",
      "{Do you remember|Do you know|Can you tell me|Tell me} my name{?|}",
      "{Who am I|How am I called|What am I called|What do people call me}?",
      "{What did I say my name was|What name did I give you|Which name did I tell you}?",
      "Say my name{.|}",
      "{And|So|Now|Okay, now}{,|} what {is|was} my name[ again]?",
      "{Remember me? What is my name|Have you forgotten my name|Did you forget my name}?",
      ...asksOf("name-ask"),
      ...asksOf("name-ask-parts"),
    ],
    answers: ["Your name is $v.", "Your name is $v.", "You are $v."],
  },
  number: {
    make: (rng) => String(rng.int(2, rng.pick([20, 99, 999]))),
    tells: [
      "{My {lucky|favorite} number is|Remember the number|The number is|Keep this number in mind:} $v{.|}",
      "{Please remember|Remember|Note} {this number|the number}: $v{.|}",
      "{The secret number|My number|My room number|The code} is $v{.|}",
      "I {think of|chose|picked} the number $v{.|}",
    ],
    acks: [...generalAck, "{Okay|Good}, the number is $v{.|!}"],
    asks: [
      "{What was|What is|Tell me|Say} {my number|the number}{?|}",
      "{Which|What} number did I {tell|give} you?",
      "{Do you remember|Can you tell me} {my number|the number|which number I said}?",
      "What number {should you remember|did I say}?",
    ],
    answers: ["The number is $v.", "Your number is $v."],
  },
  color: {
    make: (rng) => rng.pick(membersOf("colors")),
    tells: [
      "{My favorite color is|The color I like best is|I like the color} $v{.|}",
      "I {love|really like} $v{.|, it is my favorite color.}",
    ],
    acks: [...generalAck, "{$u is a nice color|Nice, $v is a good color}{.|!}"],
    asks: [
      "{What is|What's|What was|Tell me} my favorite color{?|}",
      "{Which|What} color do I like[ best]?",
      "Do you remember my favorite color?",
    ],
    answers: ["Your favorite color is $v."],
  },
  city: {
    make: placeName,
    tells: ["{I live in|I am from|I come from|My home is} $v{.|}", "{I moved to|I was born in|My home town is} $v{.|}"],
    acks: [...generalAck, "{$v is a nice place|$v sounds nice|How is life in $v}{.|!}"],
    asks: [
      "Where {do I live|am I from|do I come from|is my home}?",
      "{Which|What} {city|town} {do I live in|am I from|did I mention}?",
      "Do you remember where I live?",
    ],
    answers: ["You told me $v.", "You live in $v.", "It is $v."],
  },
  pet: {
    make: (rng) =>
      rng.pick([
        "Luna",
        "Max",
        "Coco",
        "Rocky",
        "Bella",
        "Milo",
        "Daisy",
        "Pepper",
        "Sunny",
        "Biscuit",
        "Shadow",
        "Oreo",
      ]),
    tells: [
      "{My|Our} {dog|cat|pet|rabbit|hamster} is {called|named} $v{.|}",
      "I have a {dog|cat|pet|rabbit} {called|named} $v{.|}",
      "The name of my {dog|cat|pet} is $v{.|}",
    ],
    acks: [...generalAck, "{$v is a lovely name|That is a nice name}{.|!}"],
    asks: [
      "{What is|What's|Tell me} the name of my {pet|animal}{?|}",
      "{How is my pet called|What is my pet called|What is my pet's name}?",
      "Do you remember the name of my pet?",
    ],
    answers: ["Your pet is called $v.", "The name of your pet is $v."],
  },
  age: {
    make: (rng) => String(rng.int(6, 90)),
    tells: ["I am $v years old{.|}", "{My age is|I just turned|I'm} $v{.|}"],
    acks: generalAck,
    asks: ["{How old am I|What is my age|Tell me my age|Do you remember my age}{?|}"],
    answers: ["You are $v years old."],
  },
  food: {
    make: (rng) =>
      rng.pick([
        "pizza",
        "pasta",
        "soup",
        "rice",
        "chocolate",
        "cheese",
        "pancakes",
        "apple pie",
        "salad",
        "ice cream",
      ]),
    tells: ["{My favorite food is|I love to eat|The food I like best is} $v{.|}", "I could eat $v every day{.|}"],
    acks: [...generalAck, "{$u is tasty|Many people like $v}{.|!}"],
    asks: [
      "{What is|What's|What was} my favorite food?",
      "{What|Which food} do I like to eat?",
      "What food did I mention?",
    ],
    answers: ["Your favorite food is $v."],
  },
  word: {
    make: anyWord,
    tells: [
      "{Remember|Please remember|Keep in mind|Memorize} {this word|the word}: $v{.|}",
      "The {secret|magic|code} word is $v{.|}",
      "{Our|My|The} password is $v{.|}",
    ],
    acks: [...generalAck, "{Okay|Good}, the word is $v."],
    asks: [
      "{What was|What is|Tell me} the {word|secret word|magic word|password}{?|}",
      "{Which|What} word {did I tell you|did I say|should you remember}?",
      "Do you remember the word?",
    ],
    answers: ["The word is $v."],
  },
};

/** The user tells the name, and the greeting that follows. */
export function tellName(draw: Draw, name: string): Message[] {
  const slot = slots.name as Slot;
  const { rng } = draw;
  const told = asTyped(rng, fill(rng, pickWording(draw, slot.tells), name));
  return [user(told), assistant(fill(rng, rng.pick(slot.acks), name))];
}

/** `between` makes the talk in the middle: short exchanges of other families. */
export function memory(draw: Draw, between: (draw: Draw) => Conversation): Conversation {
  const { rng } = draw;
  const kinds = rng.chance(0.45)
    ? ["name"]
    : rng.sample(
        Object.keys(slots),
        rng.weighted([
          [1, 3],
          [2, 2],
        ]),
      );
  const messages: Message[] = [];
  const told = new Map<string, string>();
  for (const kind of kinds) {
    const slot = slots[kind] as Slot;
    let value: string;
    do value = slot.make(rng);
    while (kind === "name" && splitOf(`memory:${value}`) !== draw.split);
    told.set(kind, value);
    messages.push(
      user(asTyped(rng, fill(rng, pickWording(draw, slot.tells), value))),
      assistant(fill(rng, rng.pick(slot.acks), value)),
    );
  }
  if (rng.chance(0.08)) {
    const kind = kinds[0] as string;
    const value = (slots[kind] as Slot).make(rng);
    told.set(kind, value);
    messages.push(
      user(
        fill(
          rng,
          "{Sorry|Wait|Actually|No}, {I was wrong|I made a mistake|that was not right}: {it is|it's|make it} $v{.|}",
          value,
        ),
      ),
      assistant(fill(rng, "{Okay|Alright|Thanks}, {I will use|it is|noted:} $v.", value)),
    );
  }
  const pauses = rng.weighted([
    [0, 2],
    [1, 4],
    [2, 4],
    [3, 2],
  ]);
  for (let i = 0; i < pauses; i++)
    messages.push(...between(draw).messages.filter((message) => message.role !== "system"));
  const asked = rng.pick(kinds);
  const slot = slots[asked] as Slot;
  const value = told.get(asked) as string;
  messages.push(
    user(asTyped(rng, say(rng, pickWording(draw, slot.asks)))),
    assistant(fill(rng, rng.pick(slot.answers), value)),
  );
  return { family: asked === "name" ? "memory-name" : "memory", messages, check: { kind: "contains", any: [value] } };
}

function fill(rng: Rng, template: string, value: string): string {
  return say(rng, template, { v: value, u: value.charAt(0).toUpperCase() + value.slice(1) });
}

// Who is who in a conversation: the user's name, the names of people the user mentions, and the model's own. Names are told
// early and asked for in free words after other talk, so that the model learns to keep them apart.

import { talkIntents } from "./bank.ts";
import { assistant, type Conversation, type Message, user } from "./conversation.ts";
import { personName } from "./made-up.ts";
import { tellName } from "./memory.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { asTyped, say } from "./wording.ts";

/** [wordings, reply]; $v is the user's name. */
const aboutUser: readonly (readonly [string, string])[] = [
  [
    "{Who is|Who's} {the person|the human|the one} {you are helping|writing these messages|at the keyboard|you chat with|on my side of this chat}?",
    "{That is you, $v.|You are $v.|It is you, $v.}",
  ],
  [
    "{Greet me the way a friend would, by name|Wish me a good day and use my name|Wish me luck, with my name}{.|, please.|}",
    "{Have a good day|Good luck|All the best}, $v!",
  ],
  [
    "{What belongs|What should stand|What would you write} on my {name tag|cup|badge|door|locker}?",
    "{Your name: $v.|$v.|It should say $v.}",
  ],
  ["{Who sent you the first message|Who started this conversation|Who wrote first}?", "{You did, $v.|It was you, $v.}"],
  [
    "{Do you still know who I am|Can you still tell who I am|Have I become a stranger|You haven't forgotten me, have you}?",
    "{I remember: you are $v.|You are $v.|Of course I know you, $v.}",
  ],
  [
    "{Introduce me to|Present me to} {my friend|the class|the team|someone} in {one|a} short sentence{.|}",
    "{This is $v.|May I introduce $v?|Meet $v.}",
  ],
  ["{How would you begin|Begin|Start} a letter to me{?|.}", "Dear $v,"],
  ["{Complete|Fill in|Finish}: {the user is called|this user's name is|I am talking with} {___|...}", "$v."],
  [
    "{Which name|What name} {belongs to me|is mine|stands for me}{ here| in this chat|}?",
    "{Your name is $v.|$v is your name.}",
  ],
  [
    "{My name slipped my mind|I am confused today|Help my memory|I woke up from a dream}{: |, }{who was I again|what am I called|what do they call me}?",
    "{You are $v.|Your name is $v.}",
  ],
];
const others = [
  "brother",
  "sister",
  "dog",
  "cat",
  "boss",
  "best friend",
  "teacher",
  "neighbor",
  "son",
  "daughter",
  "aunt",
  "doctor",
];
const tellOther = [
  "My $o is called $x{.|}",
  "{I have a|There is my} $o, {called|named} $x{.|}",
  "{The name of my $o is|My $o's name is} $x{.|}",
  "$x is my $o{.|}",
  "{Yesterday|Today|This morning} I {met|saw|called|visited} my $o $x{.|}",
];
const askOther = [
  "{What is|What's|Tell me} the name of my $o{?|}",
  "{What is my $o called|How is my $o called|Who is my $o}?",
  "{And my $o|What about my $o}, {what is the name|which name was it}?",
  "{Which name|What name} did I {tell|give} you for my $o?",
  "Do you {remember|know} the name of my $o?",
];
const askOwn = [
  "{And what is your name|And you? What are you called|And who are you|What about you, what is your name}?",
  "{I told you my name|You know my name now}{. What is yours|, so what is yours}?",
  "{What do I call you|How should I address you|Which model are you}?",
];
const identity = talkIntents.find((intent) => intent.name === "who");

/** `between` makes the talk in the middle. */
export function people(draw: Draw, between: (draw: Draw) => Conversation): Conversation {
  const { rng } = draw;
  let [v, x] = ["", ""];
  do [v, x] = [personName(rng), personName(rng)];
  while (v === x || splitOf(`memory:${v}`) !== draw.split || splitOf(`memory:${x}`) !== draw.split);
  const o = rng.pick(others);
  const about = rng.weighted([
    ["user", 6],
    ["other", 2],
    ["model", 1],
  ] as const);
  const told: Message[][] = [tellName(draw, v)];
  if (about === "other" || rng.chance(0.35)) {
    const reply = say(rng, "{Nice to know|Good to know|Thanks for telling me|Say hello to $x|Greetings to $x}{.|!}", {
      x,
    });
    told.push([user(say(rng, rng.pick(tellOther), { o, x })), assistant(reply)]);
  }
  const messages = (rng.chance(0.7) ? told : told.reverse()).flat();
  const pauses = rng.weighted([
    [0, 1],
    [1, 5],
    [2, 3],
  ]);
  for (let i = 0; i < pauses; i++)
    messages.push(...between(draw).messages.filter((message) => message.role !== "system"));
  if (about === "model" && identity !== undefined) {
    messages.push(user(asTyped(rng, say(rng, rng.pick(askOwn)))), assistant(say(rng, rng.pick(identity.replies))));
    return { family: "people", messages, check: { kind: "contains", any: ["flywheel-mini"] } };
  }
  if (about === "other") {
    const reply = say(rng, "{Your $o is called $x.|It is $x.|$x.}", { x, o });
    messages.push(user(asTyped(rng, say(rng, pickWording(draw, askOther), { o }))), assistant(reply));
  } else {
    const [ask, answer] = pickWording(draw, aboutUser);
    messages.push(user(asTyped(rng, say(rng, ask))), assistant(say(rng, answer, { v })));
  }
  return { family: "people", messages, check: { kind: "contains", any: [about === "user" ? v : x] } };
}

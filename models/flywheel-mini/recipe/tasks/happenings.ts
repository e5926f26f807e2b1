// Made-up events for reading exercises: who did what, with whom, where, when and why. Each part is a span that a question can
// ask for. An event has one or two sentences.

import { personName, placeName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { say } from "./wording.ts";

export interface Question {
  ask: string;
  /** The span of the text that answers it. */
  answer: string;
}

export interface Happening {
  text: string;
  questions: Question[];
  /** Questions of the same kind that the text does not answer. */
  unanswered: string[];
}

/** base form, past form, things it is done to */
const verbs: readonly (readonly [string, string, string[]])[] = [
  [
    "find",
    "found",
    ["a silver coin", "an old map", "a lost glove", "a small kitten", "a green bottle", "a letter", "a rusty key"],
  ],
  [
    "buy",
    "bought",
    ["three apples", "a red hat", "fresh bread", "a used bicycle", "two tickets", "a bag of flour", "a new lamp"],
  ],
  ["lose", "lost", ["a wallet", "the house keys", "a blue scarf", "an umbrella", "a gold ring", "the phone"]],
  ["paint", "painted", ["the fence", "a picture of a boat", "the kitchen wall", "a wooden bench", "a portrait"]],
  [
    "build",
    "built",
    ["a tree house", "a small boat", "a stone wall", "a birdhouse", "a bridge of wood", "a sand castle"],
  ],
  ["cook", "cooked", ["tomato soup", "rice with beans", "a big dinner", "pancakes", "fish and potatoes"]],
  ["read", "read", ["a book about stars", "an old newspaper", "a poem", "a long letter", "a story about pirates"]],
  ["repair", "repaired", ["the radio", "a broken chair", "the clock", "an old bike", "the roof", "a toy train"]],
  ["plant", "planted", ["an apple tree", "some roses", "carrots", "a row of beans", "sunflowers"]],
  ["sell", "sold", ["a painting", "twelve eggs", "an old car", "homemade jam", "a pair of boots"]],
  ["see", "saw", ["a white horse", "a rainbow", "two foxes", "a hot air balloon", "a famous singer", "an owl"]],
  ["carry", "carried", ["a heavy box", "a basket of fruit", "a ladder", "two buckets of water", "a guitar"]],
  ["write", "wrote", ["a song", "a postcard", "a short story", "a shopping list", "a report"]],
  ["hide", "hid", ["a present", "a box of chocolate", "the treasure map", "a diary", "a spare key"]],
  ["catch", "caught", ["a large fish", "a butterfly", "the last train", "a cold", "a red ball"]],
  ["borrow", "borrowed", ["a tent", "a cookbook", "a hammer", "a warm coat", "a camera"]],
  ["draw", "drew", ["a map", "a dragon", "a plan of the house", "a funny face", "a castle"]],
  ["clean", "cleaned", ["the windows", "the garage", "a muddy car", "the fish tank", "the classroom"]],
  ["win", "won", ["a medal", "the chess game", "a cake", "first prize", "a toy bear"]],
  ["break", "broke", ["a cup", "the window", "a plate", "an arm", "the handle of the door"]],
];
const roles = [
  "the baker",
  "the farmer",
  "the teacher",
  "the old sailor",
  "the young doctor",
  "the gardener",
  "the mayor",
  "the nurse",
  "the tailor",
  "the postman",
  "a tall stranger",
  "the librarian",
  "the fisherman",
  "the painter",
  "the shopkeeper",
  "the pilot",
  "the twins",
  "the shepherd",
  "the clown",
  "the blacksmith",
];
const places = [
  "in the park",
  "at the market",
  "behind the school",
  "near the old bridge",
  "in the library",
  "at the train station",
  "in the garden",
  "on the beach",
  "in a small cafe",
  "at the town hall",
  "under the big oak",
  "in the kitchen",
  "at the harbor",
  "next to the church",
  "in the attic",
  "on the farm",
  "at the museum",
  "in the forest",
  "by the lake",
  "on the hill",
];
const times = [
  "on Monday",
  "on Tuesday",
  "on Friday",
  "last Sunday",
  "in the morning",
  "in the evening",
  "at noon",
  "at midnight",
  "after lunch",
  "before breakfast",
  "in April",
  "in July",
  "last winter",
  "two days ago",
  "on a rainy afternoon",
  "at five o'clock",
  "during the holidays",
  "after school",
];
const reasons = [
  "because it was raining",
  "because the shop was closed",
  "because a friend had asked for help",
  "because it was a birthday",
  "because the old one was broken",
  "because the money was needed",
  "because everyone was hungry",
  "because the weather was so nice",
  "because the bus was late",
  "because the neighbors were away",
  "because it was a holiday",
  "because the dog was barking",
];
const friends = [
  "a neighbor",
  "an old friend",
  "a cousin",
  "a brother",
  "a sister",
  "a little girl",
  "two children",
  "a policeman",
  "an uncle",
  "a grandmother",
];

const upperFirst = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

export function happening(rng: Rng): Happening {
  const who = rng.chance(0.5) ? personName(rng) : rng.pick(roles);
  const [base, past, things] = rng.pick(verbs);
  const what = rng.pick(things);
  const place = rng.chance(0.75) ? rng.pick([...places, `in ${placeName(rng)}`]) : undefined;
  const time = rng.chance(0.65) ? rng.pick(times) : undefined;
  const reason = rng.chance(0.4) ? rng.pick(reasons) : undefined;
  const friend = rng.chance(0.25) ? rng.pick(friends) : undefined;
  let text = `${who} ${past} ${what}`;
  if (friend !== undefined) text += ` with ${friend}`;
  if (place !== undefined) text += ` ${place}`;
  if (time !== undefined) text = rng.chance(0.5) ? `${text} ${time}` : `${time}, ${text}`;
  if (reason !== undefined) text += ` ${reason}`;
  const values = { who, past, base, what, place: place ?? "", time: time ?? "" };
  const ask = (template: string) => upperFirst(say(rng, template, values));
  const questions: Question[] = [
    {
      ask: ask(
        `{Who $past $what${time === undefined ? "" : "[ $time]"}?|Who was it that $past $what?|Which person $past $what?|Tell me who $past $what.}`,
      ),
      answer: who,
    },
    {
      ask: ask(
        `{What did $who $base${place === undefined ? "" : "[ $place]"}?|What was it that $who $past?|Which thing did $who $base?}`,
      ),
      answer: what,
    },
  ];
  const unanswered: string[] = [];
  const put = (answer: string | undefined, template: string) => {
    if (answer === undefined) unanswered.push(ask(template));
    else questions.push({ ask: ask(template), answer });
  };
  put(
    place,
    "{Where did $who $base $what?|Where was it that $who $past $what?|In which place did $who $base $what?|Where did this happen with $what?}",
  );
  put(time, "{When did $who $base $what?|When was it that $who $past $what?|At what time did $who $base $what?}");
  put(
    reason,
    "{Why did $who $base $what?|What was the reason that $who $past $what?|For what reason did $who $base $what?}",
  );
  put(friend, "{With whom did $who $base $what?|Who was with $who?|Who helped $who?}");
  return { text: `${upperFirst(text)}.`, questions, unanswered };
}

// Short writing: very short stories, a sentence with given words, a short message. The wording grammar does the work.

import { names, words } from "./bank.ts";
import { type Conversation, exchange } from "./conversation.ts";
import { type Draw, pickWording } from "./split.ts";
import { asTyped, say } from "./wording.ts";

const storyAsks: readonly string[] = [
  "{Tell|Write|Make up|Give} {me |}a {short |little |very short |tiny |}story about $h{.|}",
  "{Can you tell me|Could you write|Please write|Do you know} a {short |little |}story about $h?",
  "{I want|I would like} {to hear |}a {short |little |}story about $h{.|}",
  "{A story about $h, please|Story time: $h|Once upon a time there was $h. Go on}.",
  "Write {three|four|a few} sentences about {the adventure of $h|a day of $h}.",
  "{Tell|Read} me a bedtime story about $h{.|}",
];
const heroes: readonly (readonly [string, string])[] = [
  ["a cat", "cat"],
  ["a dog", "dog"],
  ["a little mouse", "mouse"],
  ["a brave knight", "knight"],
  ["a robot", "robot"],
  ["a king", "king"],
  ["a small dragon", "dragon"],
  ["an old sailor", "sailor"],
  ["a bear", "bear"],
  ["a rabbit", "rabbit"],
  ["a girl with a red hat", "girl"],
  ["a boy and his kite", "boy"],
  ["a lonely star", "star"],
  ["a frog", "frog"],
  ["a bird that could not fly", "bird"],
  ["a baker", "baker"],
  ["a turtle", "turtle"],
  ["a fox", "fox"],
  ["a young wizard", "wizard"],
  ["a snowman", "snowman"],
  ["an elephant", "elephant"],
  ["a farmer", "farmer"],
  ["a princess", "princess"],
  ["a clever duck", "duck"],
];
const stories: readonly string[] = [
  "Once upon a time there was $h. {One day|One morning} the $s {found|saw} {a small door in an old tree|a letter without a name|a shiny stone by the river|a lost child in the forest}. {The $s was curious and wanted to know more.|At first the $s was afraid.} {With the help of a friend|After a long walk}, the $s {solved the mystery|found the answer}. {From that day on they were happy.|Everyone in the village was glad.}",
  'There was once $h {that lived near a lake|that lived in a quiet village|that lived on a high hill}. Every day the $s wished for {a friend|an adventure|something new}. {Then a storm came and brought a stranger to the door|One evening someone knocked at the door}. {They talked all night and became friends.|The stranger told of far places, and they set out together.} {In the end|Years later} the $s said: {"A wish is the start of a journey."|"I am not alone anymore."|"This was the best day of my life."}',
  "{Long ago|In a far land} lived $h. The $s had {lost a golden key|broken a promise|heard a strange sound|a secret map}. {Day after day the $s looked for help.|Nobody could help at first.} {At last a wise old owl gave good advice|At last a small ant showed the way}. {The $s listened, and all went well.|The $s smiled and went home happy.} The end.",
  "This is the story of $h. {On a cold winter day|On a sunny morning} the $s went {to the market|into the forest|to the sea}. There the $s met {a hungry bird|an old woman|a crying child|a lost sheep} and {shared some bread|offered help|gave away a warm scarf}. {A kind act comes back: later that day, help came to the $s, too.|The $s felt warm inside all day long.}",
];

export function story(draw: Draw): Conversation {
  const { rng } = draw;
  const [h, s] = rng.pick(heroes);
  return exchange(
    "writing",
    asTyped(rng, say(rng, pickWording(draw, storyAsks), { h })),
    say(rng, rng.pick(stories), { h, s }),
  );
}

const nounFrames = [
  "I saw the $a near the $b.",
  "The $a is next to the $b.",
  "She put the $a beside the $b.",
  "We found a $a and a $b in the garden.",
  "He likes the $a, but not the $b.",
  "The $a and the $b are both old.",
  "There is a $a behind the $b.",
];
const oneFrames = [
  "I saw the $a yesterday.",
  "The $a is very old.",
  "She gave me a $a.",
  "We like the $a in the garden.",
  "He is looking for the $a.",
  "The $a was on the table.",
  "Do you see the $a over there?",
];
const nouns = new Set([
  "river",
  "stone",
  "cloud",
  "table",
  "chair",
  "tiger",
  "forest",
  "garden",
  "window",
  "door",
  "house",
  "street",
  "bridge",
  "castle",
  "farmer",
  "doctor",
  "teacher",
  "pencil",
  "letter",
  "fox",
  "dog",
  "cat",
  "bird",
  "fish",
  "horse",
  "mouse",
  "lion",
  "bear",
  "wolf",
  "snake",
  "frog",
  "spider",
  "tree",
  "leaf",
  "flower",
  "lake",
  "boat",
  "ship",
  "car",
  "bus",
  "train",
  "road",
  "city",
  "village",
  "farm",
  "barn",
  "field",
  "king",
  "queen",
  "prince",
  "knight",
  "sword",
  "crown",
  "coin",
  "ring",
  "box",
  "bag",
  "cup",
  "plate",
  "spoon",
  "fork",
  "knife",
  "pot",
  "lamp",
  "candle",
  "clock",
  "phone",
  "radio",
  "camera",
  "picture",
  "hat",
  "shoe",
  "sock",
  "ball",
  "kite",
  "drum",
  "piano",
  "violin",
  "guitar",
  "book",
  "map",
  "flag",
  "key",
  "rope",
  "wheel",
  "robot",
  "computer",
  "mountain",
  "tower",
  "wall",
  "roof",
  "shop",
  "museum",
  "library",
  "sailor",
  "pilot",
  "baker",
  "painter",
  "singer",
  "friend",
  "gift",
  "tent",
  "bike",
  "mirror",
  "feather",
  "nest",
  "shell",
  "rocket",
  "lantern",
  "ladder",
  "hammer",
  "basket",
  "blanket",
  "pillow",
  "bottle",
  "bucket",
  "rabbit",
  "turtle",
  "parrot",
  "monkey",
  "donkey",
  "goat",
  "sheep",
  "duck",
]);

export function sentenceWith(draw: Draw): Conversation {
  const { rng } = draw;
  const list = words.filter((word) => nouns.has(word));
  const [a, b] = rng.sample(list, 2) as [string, string];
  if (rng.chance(0.6)) {
    const prompt = say(
      rng,
      '{{Write|Make|Give me|Form|Create} {a|one|a short} sentence {with|using|that contains} {the word |}{"$a"|$a}{.|}|{Use|Put} {the word |}{"$a"|$a} in a sentence{.|}}',
      { a },
    );
    const reply = say(rng, rng.pick(oneFrames), { a });
    return exchange("writing", asTyped(rng, prompt), reply, { kind: "contains", any: [a] });
  }
  const prompt = say(
    rng,
    '{Write|Make|Give me|Form|Create} {a|one|a short} sentence {with|using|that contains} {the words |}{"$a" and "$b"|$a and $b}{.|}',
    { a, b },
  );
  return exchange("writing", asTyped(rng, prompt), say(rng, rng.pick(nounFrames), { a, b }), {
    kind: "contains",
    any: [a],
  });
}

const occasions: readonly (readonly [string, string])[] = [
  ["birthday", "Happy birthday, $n! I wish you {a wonderful day|all the best|health and joy}{.|!}"],
  [
    "thank-you",
    "Dear $n, thank you {so much for your help|for the lovely gift|for being there}. {I am very grateful.|It means a lot to me.}",
  ],
  ["get-well", "Dear $n, get well soon! {Rest well, I think of you.|I hope to see you healthy again soon.}"],
  [
    "invitation",
    "Dear $n, you are invited to {my party|dinner} on {Saturday|Friday|Sunday}. {Please let me know if you can come.|I would be happy to see you.}",
  ],
  [
    "apology",
    "Dear $n, I am sorry {that I was late|for what I said|that I forgot}. {I hope you can forgive me.|It will not happen again.}",
  ],
  ["good-luck", "Good luck, $n! {You can do it.|I believe in you.}"],
];

export function note(draw: Draw): Conversation {
  const { rng } = draw;
  const [occasion, text] = rng.pick(occasions);
  const n = rng.pick(names);
  const prompt = say(
    rng,
    "{Write|Give me|I need|Can you write} a {short |little |}$o {message|note|card|text} {for|to} $n{.|, please.}",
    { o: occasion, n },
  );
  return exchange("writing", asTyped(rng, prompt), say(rng, text, { n }));
}

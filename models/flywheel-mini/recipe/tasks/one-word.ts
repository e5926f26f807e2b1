// "Answer with one word": knowledge questions whose answer is a word, with many ways to ask for the format. The same questions
// also appear without it, answered in a sentence.

import { asksOf, capitalised, factsOf, sentences, sets, shortAnswers, topics, withArticle } from "./bank.ts";
import { type Conversation, exchange, system } from "./conversation.ts";
import { type Draw, pickWording } from "./split.ts";
import { asTyped, say } from "./wording.ts";

interface Relation {
  ask: string[];
  sentence: string;
}

const relations: Record<string, Relation> = {
  opposite: {
    ask: [
      'What is the opposite of {"$key"|$key|the word $key}?',
      "{Give|Tell|Name} me the opposite of $key.",
      "{What's|What is} the {antonym|contrary} of $key?",
      "Which word means the opposite of $key?",
      "If something is not $key, what is it?",
      "$key is the opposite of what?",
    ],
    sentence: "The opposite of $key is $value.",
  },
  color: {
    ask: [
      "What color is $key?",
      "{Which|What} color does $key have?",
      "{Tell me|Name} the color of $key.",
      "What is the usual color of $key?",
      "The color of $key is what?",
      "What colour is $key?",
    ],
    sentence: "The color of $key is $value.",
  },
  sound: {
    ask: ["What sound does $key make?", "{Which|What} noise does $key make?", "What does $key say?"],
    sentence: 'The sound of $key is "$value".',
  },
  young: {
    ask: [
      "What is {a young one|the young|the baby} of $key called?",
      "{How do you call|What do you call} the {baby|young} of $key?",
      "What is the name for the child of $key?",
    ],
    sentence: "The young of $key is called a $value.",
  },
  home: {
    ask: ["Where does $key live?", "What is the home of $key called?", "In what does $key live?"],
    sentence: "The home of $key is called a $value.",
  },
  place: {
    ask: ["Where does $key work?", "What is the place of work of $key?", "In which place do you find $key at work?"],
    sentence: "You find $key in a $value.",
  },
  capital: {
    ask: [
      "What is the capital of $key?",
      "{Name|Tell me|Give me} the capital {city |}of $key.",
      "Which city is the capital of $key?",
      "The capital of $key is what?",
      "Do you know the capital of $key?",
      "What's $key's capital?",
    ],
    sentence: "The capital of $key is $value.",
  },
  continent: {
    ask: [
      "{On|In} which continent is $key?",
      "What continent is $key {on|in}?",
      "$key lies on which continent?",
      "Where in the world is $key? Name the continent.",
    ],
    sentence: "$key is in $value.",
  },
  kind: {
    ask: [
      'What kind of thing is {"$key"|$key}?',
      "{Which|What} category does $key belong to?",
      "What is $key an example of?",
      "{Classify|Categorize} this word: $key.",
      "What type of thing is $key?",
    ],
    sentence: "The word $key is an example of: $value.",
  },
  plural: {
    ask: [
      'What is the plural of {"$key"|$key}?',
      "{Give|Tell} me the plural {form |}of $key.",
      "One $key, two what?",
      "How do you write $key in the plural?",
    ],
    sentence: "The plural of $key is $value.",
  },
  past: {
    ask: [
      'What is the past {tense|form} of {"$key"|$key}?',
      "{Give|Tell} me the past {tense |form |}of $key.",
      "Today I $key. Yesterday I what?",
      "How do you say $key in the past?",
    ],
    sentence: "The past tense of $key is $value.",
  },
  legs: {
    ask: ["How many legs does $key have?", "What is the number of legs of $key?"],
    sentence: "The number of legs of $key is $value.",
  },
  "used for": {
    ask: ["What {do you use|do people use} $key for?", "What is $key used for?", "What is the use of $key?"],
    sentence: "People use $key for $value.",
  },
  "made of": {
    ask: ["What is $key made of?", "{Which|What} material is $key made of?", "From what is $key made?"],
    sentence: "The material of $key is $value.",
  },
  number: {
    ask: ["How many $key?", "What is the number of $key?", "{Tell me|Do you know} how many $key there are{.|?}"],
    sentence: "The answer is $value.",
  },
};
const relationNames = Object.keys(relations);

/** The ways to ask for a single word; $q is the question. */
export const oneWordFormats: readonly string[] = [
  "$q {Answer|Reply|Respond} with {one|a single|just one|exactly one|only one} word{.|!|}",
  "{Answer|Reply|Respond} with {one|a single|just one|exactly one|only one} word{:|.} $q",
  "$q {One word only|Only one word|Just one word|One word|Single word}[, please]{.|!|}",
  "{In|Using} {one|a single|exactly one} word{:|,} $q",
  "$q {Use|Write|Give|Say|Type} {only|just|exactly|no more than} one word{.|}",
  "$q {Your answer {must|should} be|I want|Give me} {one|a single} word[ only| and nothing else]{.|}",
  "$q (one word)",
  "$q {Give|I need|I want} a {one-word|single-word|one word} {answer|reply|response}{.|, please.}",
  "{Answer|Reply to} {this|the question|the following} {in|with|using} {one|a single|only one} word{:|.} $q",
  "$q {Don't|Do not} {write|use|say|give me} more than {one|a single} word{.|}",
  "One-word {answer|reply}[, please|only]: $q",
  "$q {No sentence|No explanation|Nothing else}, {only|just} {one|the|a single} word{.|}",
  "{Please answer|Answer|Can you answer} {in|with} {one|a single} word{:|.} $q",
  "$q {Keep it to|Limit yourself to|Answer in} {one|a single} word{.|}",
  "$q {Answer|Reply} {in|with} {a|one} word.",
  ...asksOf("one-word"),
  ...asksOf("one-word-parts"),
];
const systemFormats = [
  "{Answer|Always answer|Reply|Respond}[ every question] with {one|a single|exactly one} word{.|}",
  "You {only speak in|answer in|use} single words{.|}",
  "{Your replies|All answers} {must|should} be one word long{.|}",
];

interface Question {
  text: string;
  answers: string[];
  sentence: string;
}

export function oneWord(draw: Draw): Conversation {
  const { rng } = draw;
  let question = wordQuestion(draw);
  while (question.answers.some((answer) => /[ -]/.test(answer))) question = wordQuestion(draw);
  const answer = capitalised(rng.pick(question.answers));
  const check = { kind: "word" as const, answers: question.answers };
  if (rng.chance(0.12)) {
    const conversation = exchange("one-word", asTyped(rng, question.text), answer, check);
    conversation.messages.unshift(system(say(rng, rng.pick(systemFormats))));
    return conversation;
  }
  const prompt = asTyped(rng, say(rng, pickWording(draw, oneWordFormats), { q: question.text }));
  return exchange("one-word", prompt, answer, check);
}

/** The same questions without a format, answered in a sentence. */
export function plainQuestion(draw: Draw): Conversation {
  const question = wordQuestion(draw);
  return exchange("question", asTyped(draw.rng, question.text), question.sentence);
}

export function wordQuestion(draw: Draw): Question {
  const { rng } = draw;
  const style = rng.weighted([
    ["fact", 10],
    ["common", 8],
    ["member", 3],
    ["topic", 2],
    ["describe", 2],
    ["sentence", 2],
    ["pair", 2],
  ] as const);
  if (style === "common") {
    const [text, answer, sentence] = rng.pick(shortAnswers);
    return { text, answers: [answer], sentence };
  }
  if (style === "member") {
    const [set, members] = rng.pick(sets);
    const text = say(
      rng,
      "{Name|Give me|Tell me|Say|Think of|What is} {one|an example} {of the|from the group of|of} {$set}{.|?}",
      { set },
    );
    const member = rng.pick(members);
    return { text, answers: members, sentence: `One of the ${set} is: ${member}.` };
  }
  if (style === "topic") {
    const about = rng.pick(topics);
    const text = say(
      rng,
      "{What kind of thing is $single?|$up: what kind of thing is that?|{Which|What} category fits $single?}",
      { single: about.single, up: capitalised(about.single) },
    );
    return {
      text,
      answers: [about.kind],
      sentence: `${capitalised(about.single)} belongs to this kind: ${about.kind}.`,
    };
  }
  if (style === "describe") {
    const [thing, adjectives] = rng.pick(descriptions);
    const text = say(
      rng,
      "{Describe $t|How would you describe $t?|What is $t like?|Which word fits $t?|How do you find $t?|What do you think of $t?}",
      { t: thing },
    );
    return {
      text: /[.?]$/.test(text) ? text : `${text}.`,
      answers: adjectives,
      sentence: `${capitalised(thing)} ${/s$/.test(thing) ? "are" : "is"} ${rng.pick(adjectives)}.`,
    };
  }
  if (style === "sentence") {
    const sentence = rng.pick(sentences);
    const list = sentence.split(" ");
    const [label, word] = rng.pick([
      ["first", list[0]],
      ["last", list[list.length - 1]],
      ["second", list[1]],
    ] as const);
    const text = say(rng, 'What is the $label word of {this sentence|the sentence}{: $s|: "$s."}', {
      label,
      s: sentence,
    });
    return {
      text: /[.?"]$/.test(text) ? text : `${text}.`,
      answers: [word as string],
      sentence: `The ${label} word is "${word}".`,
    };
  }
  if (style === "pair") {
    const [bigger, smaller] = rng.pick(sizes);
    const [a, b] = rng.shuffle([bigger, smaller]) as [string, string];
    const want = rng.pick(["bigger", "smaller", "larger"]);
    const answer = want === "smaller" ? smaller : bigger;
    const text = say(rng, "{Which is|What is|Which one is} $want{:|,} {$a or $b|$aa or $bb}?", {
      want,
      a: withArticle(a),
      b: withArticle(b),
      aa: a,
      bb: b,
    });
    return { text, answers: [answer], sentence: `${capitalised(withArticle(answer))} is ${want}.` };
  }
  const relation = rng.pick(relationNames);
  const { ask, sentence } = relations[relation] as Relation;
  const [key, value] = rng.pick(factsOf(relation));
  return {
    text: capitalised(say(rng, pickWording(draw, ask), { key })),
    answers: relation === "kind" && ["bird", "insect", "fish"].includes(value) ? [value, "animal"] : [value],
    sentence: say(rng, sentence, { key: sentence.startsWith("$key") ? capitalised(key) : key, value }),
  };
}

/** Bigger first. */
export const sizes: readonly (readonly [string, string])[] = [
  ["elephant", "mouse"],
  ["house", "chair"],
  ["whale", "fish"],
  ["tree", "flower"],
  ["car", "bicycle"],
  ["horse", "cat"],
  ["mountain", "hill"],
  ["ocean", "lake"],
  ["lion", "rabbit"],
  ["bus", "ball"],
  ["cow", "chicken"],
  ["city", "village"],
  ["ship", "boat"],
  ["melon", "cherry"],
  ["planet", "stone"],
  ["dog", "ant"],
  ["castle", "tent"],
  ["table", "spoon"],
  ["airplane", "kite"],
  ["giraffe", "frog"],
  ["book", "stamp"],
  ["pumpkin", "grape"],
  ["bear", "bee"],
  ["truck", "shoe"],
  ["river", "puddle"],
];

const descriptions: readonly (readonly [string, string[]])[] = [
  ["winter", ["cold", "white", "dark"]],
  ["summer", ["hot", "warm", "sunny"]],
  ["the sea", ["deep", "blue", "wide"]],
  ["fire", ["hot", "bright"]],
  ["ice", ["cold", "hard"]],
  ["a lemon", ["sour", "yellow"]],
  ["sugar", ["sweet", "white"]],
  ["a mouse", ["small", "quick"]],
  ["an elephant", ["big", "heavy", "strong"]],
  ["a pillow", ["soft"]],
  ["a stone", ["hard", "heavy"]],
  ["the night", ["dark", "quiet"]],
  ["a feather", ["light", "soft"]],
  ["a knife", ["sharp"]],
  ["honey", ["sweet", "sticky"]],
  ["a turtle", ["slow"]],
  ["a rocket", ["fast"]],
  ["thunder", ["loud"]],
  ["a library", ["quiet"]],
  ["a mountain", ["high", "tall"]],
  ["the desert", ["dry", "hot"]],
  ["rain", ["wet"]],
  ["a clown", ["funny"]],
  ["a friend", ["kind", "nice"]],
  ["a diamond", ["hard", "rare"]],
  ["school", ["useful", "interesting"]],
  ["music", ["beautiful", "nice"]],
  ["a lion", ["strong", "wild"]],
];

// Made-up descriptions of people, places, shops, machines and events for reading exercises. Each fact has several
// sentences and several questions. A text has some of the facts about one or two subjects.

import { membersOf } from "./bank.ts";
import { personName, placeName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { say } from "./wording.ts";

interface Fact {
  says: string[];
  asks: string[];
  /** The span the question wants, in wording form. */
  answer: string;
}

interface ProfileKind {
  values(rng: Rng): Record<string, string | number>;
  facts: Fact[];
}

const syllables = [
  "bo",
  "ra",
  "lin",
  "ta",
  "mel",
  "no",
  "ka",
  "sun",
  "dor",
  "vi",
  "pel",
  "gar",
  "tu",
  "wen",
  "os",
  "ri",
  "fal",
  "zem",
];
const invented = (rng: Rng): string => {
  const text = rng.sample(syllables, rng.int(2, 3)).join("");
  return text.charAt(0).toUpperCase() + text.slice(1);
};

const kinds: readonly ProfileKind[] = [
  {
    values: (rng) => ({
      n: personName(rng),
      city: placeName(rng),
      job: rng.pick(membersOf("jobs")),
      pet: rng.pick(["dog", "cat", "parrot", "rabbit", "turtle"]),
      petname: rng.pick(["Luna", "Max", "Coco", "Rocky", "Pepper", "Milo", "Biscuit"]),
      hobby: rng.pick(membersOf("hobbies")),
      food: rng.pick(["pasta", "apple pie", "fish soup", "fried rice", "pancakes", "cheese"]),
      age: rng.int(8, 80),
      month: rng.pick(membersOf("months")),
      ride: rng.pick(["bus", "bicycle", "train", "tram", "car"]),
      tool: rng.pick(membersOf("musical instruments")),
      color: rng.pick(membersOf("colors")),
      kids: rng.int(2, 6),
    }),
    facts: [
      {
        says: ["$n lives in $city.", "The home of $n is in $city.", "$n moved to $city some years ago."],
        asks: ["{Where does $n live|In which city does $n live|What is the home town of $n|Where is the home of $n}?"],
        answer: "$city",
      },
      {
        says: ["$n works as a $job.", "$n is a $job.", "By profession, $n is a $job."],
        asks: ["{What is the job of $n|What does $n do for a living|What work does $n do|What is $n's profession}?"],
        answer: "$job",
      },
      {
        says: [
          "At home there is a $pet called $petname.",
          "$n has a $pet named $petname.",
          "The $pet of the family is called $petname.",
        ],
        asks: ["{What is the name of the $pet|What is the $pet called|How is the $pet called}?"],
        answer: "$petname",
      },
      {
        says: [
          "In the free time, $n enjoys $hobby.",
          "The hobby of $n is $hobby.",
          "On weekends $n spends hours on $hobby.",
        ],
        asks: ["{What is the hobby of $n|What does $n enjoy|What does $n do in the free time}?"],
        answer: "$hobby",
      },
      {
        says: [
          "$n loves $food more than anything else.",
          "The favorite food of $n is $food.",
          "$n could eat $food every day.",
        ],
        asks: ["{What is the favorite food of $n|What does $n like to eat|Which food does $n love}?"],
        answer: "$food",
      },
      {
        says: ["$n is $age years old.", "$n turned $age this year.", "The age of $n is $age."],
        asks: ["{How old is $n|What is the age of $n|What age is $n}?"],
        answer: "$age",
      },
      {
        says: ["The birthday of $n is in $month.", "$n was born in $month."],
        asks: ["{In which month was $n born|When is the birthday of $n|In what month is the birthday of $n}?"],
        answer: "$month",
      },
      {
        says: ["$n goes to work by $ride.", "Every morning $n takes the $ride."],
        asks: ["{How does $n get to work|How does $n travel|What does $n take in the morning}?"],
        answer: "$ride",
      },
      {
        says: ["$n plays the $tool.", "In the evening $n practices the $tool."],
        asks: ["{Which instrument does $n play|What does $n play|What instrument does $n practice}?"],
        answer: "$tool",
      },
      {
        says: ["$n always wears a $color scarf.", "The house of $n has a $color door."],
        asks: ["{Which color is mentioned|What color is named in the text}?"],
        answer: "$color",
      },
      {
        says: ["$n has $kids children.", "There are $kids children in the family."],
        asks: ["{How many children does $n have|How many children are there|What is the number of children}?"],
        answer: "$kids",
      },
    ],
  },
  {
    values: (rng) => ({
      n: `${rng.pick(["Lake", "Mount", "the village of", "the town of", "the island of", "the river"])} ${invented(rng)}`,
      land: invented(rng),
      dir: rng.pick(["north", "south", "east", "west"]),
      size: rng.int(2, 900),
      people: rng.int(2, 90) * 100,
      thing: rng.pick(["honey", "cheese", "wool", "silver", "apples", "glass", "salt", "pottery"]),
      animal: rng.pick(["deer", "wild goats", "gray seals", "white owls", "otters", "storks"]),
      season: rng.pick(["spring", "summer", "autumn", "winter"]),
      year: rng.int(1200, 1990),
      fest: rng.pick(["lantern festival", "boat race", "harvest fair", "kite festival", "song contest"]),
    }),
    facts: [
      {
        says: ["$n lies in the $dir of $land.", "You find $n in the $dir of $land."],
        asks: ["{In which part of $land is $n|Where is $n}?"],
        answer: "$dir",
      },
      {
        says: ["$n is $size kilometers long.", "The length of $n is $size kilometers."],
        asks: ["{How long is $n|What is the length of $n}?"],
        answer: "$size",
      },
      {
        says: ["About $people people live there.", "It is home to $people people."],
        asks: ["{How many people live there|What is the number of people|How large is the population}?"],
        answer: "$people",
      },
      {
        says: [
          "The place is known for its $thing.",
          "It is famous for $thing.",
          "Traders come from far away to buy the $thing.",
        ],
        asks: ["{What is the place known for|What is it famous for|What is $n known for}?"],
        answer: "$thing",
      },
      {
        says: ["Visitors can see $animal there.", "Many $animal live in the area."],
        asks: ["{Which animals live there|What animals can visitors see|Which animals are in the area}?"],
        answer: "$animal",
      },
      {
        says: ["Most visitors come in $season.", "The best time for a visit is $season."],
        asks: ["{When do most visitors come|What is the best time for a visit|In which season should I visit}?"],
        answer: "$season",
      },
      {
        says: ["The first houses were built in $year.", "People have lived there since $year."],
        asks: [
          "{When were the first houses built|Since when have people lived there|In which year did people first live there}?",
        ],
        answer: "$year",
      },
      {
        says: ["Every year there is a $fest.", "The main event of the year is the $fest."],
        asks: ["{What happens every year|What is the main event of the year|Which event takes place there}?"],
        answer: "$fest",
      },
    ],
  },
  {
    values: (rng) => ({
      n: `${rng.pick(["the Green", "the Old", "the Little", "the Blue", "the Sunny"])} ${rng.pick(["Bakery", "Library", "Museum", "Cafe", "Bookshop", "Swimming Pool", "Zoo", "Hotel"])}`,
      open: rng.int(6, 11),
      close: rng.int(4, 10),
      day: rng.pick(membersOf("days of the week")),
      price: rng.int(1, 40),
      street: `${rng.pick(["Oak", "Lake", "Mill", "Station", "Church", "River"])} Street`,
      boss: personName(rng),
      rooms: rng.int(3, 60),
      best: rng.pick(["lemon cake", "a large clock", "old maps", "the rose garden", "hot chocolate", "fresh bread"]),
      rule: rng.pick(["bring dogs", "eat inside", "take pictures", "run", "smoke"]),
    }),
    facts: [
      {
        says: ["$n opens at $open in the morning.", "The doors of $n open at $open."],
        asks: ["{When does it open|At what time does $n open|What is the opening time}?"],
        answer: "$open",
      },
      {
        says: ["It closes at $close in the evening.", "In the evening it closes at $close."],
        asks: ["{When does it close|At what time does it close|What is the closing time}?"],
        answer: "$close",
      },
      {
        says: ["It is closed on $day.", "On $day it stays closed."],
        asks: ["{On which day is it closed|When is it closed|What day is it not open}?"],
        answer: "$day",
      },
      {
        says: ["A ticket costs $price dollars.", "The entrance is $price dollars."],
        asks: ["{How much is a ticket|What does it cost|How much does the entrance cost|What is the price}?"],
        answer: "$price",
      },
      {
        says: ["You find it on $street.", "The address is $street.", "$n is on $street."],
        asks: ["{Where is it|What is the address|On which street is $n}?"],
        answer: "$street",
      },
      {
        says: ["The owner is $boss.", "It belongs to $boss.", "$boss runs the place."],
        asks: ["{Who is the owner|Who owns it|Who runs the place|Whose place is it}?"],
        answer: "$boss",
      },
      {
        says: ["It has $rooms rooms.", "There are $rooms rooms in the building."],
        asks: ["{How many rooms does it have|How many rooms are there|What is the number of rooms}?"],
        answer: "$rooms",
      },
      {
        says: ["Guests come mainly for $best.", "The most popular thing is $best."],
        asks: ["{What do guests come for|What is the most popular thing|What do people like most}?"],
        answer: "$best",
      },
      {
        says: ["Visitors must not $rule.", "It is not allowed to $rule."],
        asks: ["{What is not allowed|What must visitors not do|What is forbidden}?"],
        answer: "$rule",
      },
    ],
  },
  {
    values: (rng) => ({
      n: `the ${invented(rng)} ${rng.pick(["lamp", "robot", "kettle", "radio", "printer", "drone", "camera", "heater"])}`,
      color: rng.pick(membersOf("colors")),
      weight: rng.int(1, 30),
      hours: rng.int(2, 48),
      price: rng.int(10, 900),
      button: rng.pick(["red", "green", "round", "small", "left", "top"]),
      years: rng.int(1, 10),
      maker: invented(rng),
      use: rng.pick(["at home", "outside", "in cars", "on boats", "in schools"]),
    }),
    facts: [
      {
        says: ["$n is made by $maker.", "The company $maker makes $n."],
        asks: ["{Who makes $n|Which company makes it|What is the name of the maker}?"],
        answer: "$maker",
      },
      {
        says: ["It weighs $weight kilograms.", "Its weight is $weight kilograms."],
        asks: ["{How heavy is it|What does it weigh|What is its weight}?"],
        answer: "$weight",
      },
      {
        says: ["The battery lasts for $hours hours.", "One charge is enough for $hours hours."],
        asks: ["{How long does the battery last|For how many hours does it run}?"],
        answer: "$hours",
      },
      {
        says: ["It costs $price dollars.", "The price is $price dollars."],
        asks: ["{How much does it cost|What is the price|What does $n cost}?"],
        answer: "$price",
      },
      {
        says: ["To start it, press the $button button.", "The $button button turns it on."],
        asks: ["{Which button starts it|How do I turn it on|Which button must I press}?"],
        answer: "$button",
      },
      {
        says: ["The warranty is $years years.", "It comes with a warranty of $years years."],
        asks: ["{How long is the warranty|How many years of warranty are there}?"],
        answer: "$years",
      },
      {
        says: ["It comes only in $color.", "Its color is $color."],
        asks: ["{What color is it|Which color does it have|In which color does it come}?"],
        answer: "$color",
      },
      {
        says: ["It may only be used $use.", "It is made to be used $use."],
        asks: ["{Where may it be used|Where should I use it|Where can it be used}?"],
        answer: "$use",
      },
    ],
  },
];

const upperFirst = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** Some facts about one subject: the sentences, with a question and answer for each. */
export function profile(
  rng: Rng,
  count: number,
): { title: string; sentences: string[]; questions: { ask: string; answer: string }[] } {
  const kind = rng.pick(kinds);
  const values = kind.values(rng);
  const chosen = rng.sample(kind.facts, count);
  const first = kind.facts[0] as Fact;
  // Names the subject first, so that "it" and "there" refer to something.
  const ordered = [first, ...chosen.filter((fact) => fact !== first)].slice(0, count);
  return {
    title: upperFirst(String(values.n)),
    sentences: ordered.map((fact) => upperFirst(say(rng, rng.pick(fact.says), values))),
    questions: ordered.map((fact) => ({
      ask: upperFirst(say(rng, rng.pick(fact.asks), values)),
      answer: say(rng, fact.answer, values),
    })),
  };
}

// The kinds of sentences to extract fields from: their fields with values, other names, and wordings.

import { membersOf, names } from "./bank.ts";
import { personName, placeName } from "./made-up.ts";
import type { Rng } from "./rng.ts";

export type Maker = (rng: Rng) => string | number;
interface Kind {
  fields: Record<string, Maker>;
  /** Other keys that people use for the same field. */
  aliases?: Record<string, string[]>;
  sentences: string[];
}

const person: Maker = personName;
const city: Maker = placeName;
const day: Maker = (rng) => rng.pick(membersOf("days of the week"));
const month: Maker = (rng) => rng.pick(membersOf("months"));
const clock: Maker = (rng) => `${rng.int(1, 12)}:${rng.pick(["00", "15", "30", "45"])}`;
const between =
  (low: number, high: number): Maker =>
  (rng) =>
    rng.int(low, high);
const oneOf =
  (...list: string[]): Maker =>
  (rng) =>
    rng.pick(list);
const from =
  (set: string): Maker =>
  (rng) =>
    rng.pick(membersOf(set));

export const kinds: readonly Kind[] = [
  {
    fields: { name: person, age: between(4, 90), city },
    aliases: { city: ["town", "location", "home"] },
    sentences: [
      "$name is $age years old and lives in $city.",
      "My name is $name, I am $age and I live in $city.",
      "{This is|Meet} $name from $city, who is $age years old.",
      "At $age, $name moved to $city.",
      "$name, $age, comes from $city.",
    ],
  },
  {
    fields: { name: person, job: from("jobs"), city },
    aliases: { job: ["profession", "occupation"] },
    sentences: [
      "$name works as a $job in $city.",
      "$name is a $job from $city.",
      "In $city you can meet $name, a $job.",
      "I am $name and I am a $job in $city.",
    ],
  },
  {
    fields: {
      item: oneOf(
        "lamp",
        "chair",
        "book",
        "bag",
        "clock",
        "jacket",
        "bicycle",
        "phone",
        "kettle",
        "mirror",
        "tent",
        "radio",
      ),
      price: between(2, 500),
      color: from("colors"),
    },
    aliases: { item: ["product", "object"] },
    sentences: [
      "The $color $item costs $price dollars.",
      "{I bought|She bought|We found} a $color $item for $price dollars.",
      "{For sale|Offer}: a $color $item, only $price euros.",
      "A $item in $color is $price dollars.",
    ],
  },
  {
    fields: {
      customer: person,
      item: oneOf("pizzas", "books", "chairs", "lamps", "tickets", "shirts", "cakes", "plants", "cups"),
      quantity: between(1, 40),
    },
    aliases: { customer: ["name", "buyer"], quantity: ["amount", "count", "number"] },
    sentences: [
      "$customer ordered $quantity $item.",
      "Order: $quantity $item for $customer.",
      "$customer would like to buy $quantity $item.",
      "Please send $quantity $item to $customer.",
      "We sold $quantity $item to $customer.",
    ],
  },
  {
    fields: {
      event: oneOf("meeting", "concert", "party", "lesson", "picnic", "race", "exam", "dinner", "workshop"),
      day,
      time: clock,
      place: oneOf("library", "school", "park", "town hall", "cinema", "garden", "museum", "office"),
    },
    aliases: { place: ["location", "where"], day: ["weekday"] },
    sentences: [
      "The $event is on $day at $time in the $place.",
      "{Join us|Come} for the $event at the $place on $day at $time.",
      "On $day we have a $event at $time in the $place.",
      "The $event starts at $time on $day. It takes place in the $place.",
    ],
  },
  {
    fields: { from: city, to: city, day, time: clock },
    aliases: { from: ["origin", "start"], to: ["destination", "end"] },
    sentences: [
      "The train from $from to $to leaves on $day at $time.",
      "{I want to|I will} travel from $from to $to on $day at $time.",
      "Flight from $from to $to, $day, $time.",
      "On $day at $time a bus goes from $from to $to.",
    ],
  },
  {
    fields: {
      title: oneOf(
        "The Quiet River",
        "A Long Way Home",
        "Blue Morning",
        "The Last Lamp",
        "Seven Stones",
        "The Glass Garden",
        "Night Train",
        "The Honey Thief",
      ),
      author: person,
      year: between(1900, 2024),
    },
    aliases: { author: ["writer"], title: ["book", "name"] },
    sentences: [
      '"$title" was written by $author in $year.',
      '$author wrote "$title" in $year.',
      'In $year, $author published the book "$title".',
      'The book "$title" by $author came out in $year.',
    ],
  },
  {
    fields: {
      name: oneOf("Luna", "Max", "Coco", "Rocky", "Bella", "Milo", "Daisy", "Oscar", "Pepper", "Sunny"),
      animal: oneOf("dog", "cat", "rabbit", "parrot", "horse", "hamster", "turtle"),
      age: between(1, 15),
      owner: person,
    },
    aliases: { animal: ["species", "type"] },
    sentences: [
      "$owner has a $animal called $name that is $age years old.",
      "$name is the $age year old $animal of $owner.",
      "The $animal $name belongs to $owner and is $age years old.",
      "$owner's $animal $name is $age.",
    ],
  },
  {
    fields: {
      city,
      temperature: between(-10, 40),
      weather: oneOf("sunny", "rainy", "cloudy", "windy", "snowy", "foggy"),
    },
    aliases: { weather: ["condition", "sky"], temperature: ["degrees"] },
    sentences: [
      "In $city it is $weather and $temperature degrees.",
      "The weather in $city is $weather with $temperature degrees.",
      "$city: $weather, $temperature degrees.",
      "Today $city has $temperature degrees and it is $weather.",
    ],
  },
  {
    fields: { student: person, subject: from("school subjects"), grade: oneOf("A", "B", "C", "D") },
    aliases: { student: ["name"], grade: ["mark", "result"] },
    sentences: [
      "$student got a $grade in $subject.",
      "In $subject, $student has the grade $grade.",
      "$student was given a $grade for the $subject test.",
    ],
  },
  {
    fields: {
      name: person,
      email: (rng) => `${rng.pick(names).toLowerCase()}@${rng.pick(["mail.com", "post.org", "home.net"])}`,
      phone: (rng) => `555-${rng.int(1000, 9999)}`,
    },
    sentences: [
      "You can reach $name at $email or $phone.",
      "Contact: $name, $email, phone $phone.",
      "{Write to|Ask} $name ($email) or call $phone.",
      "My name is $name. My email is $email and my phone number is $phone.",
    ],
  },
  {
    fields: {
      team: oneOf("the Lions", "the Eagles", "the Bears", "the Sharks", "the Foxes"),
      opponent: oneOf("the Wolves", "the Hawks", "the Tigers", "the Owls", "the Bulls"),
      score: (rng) => `${rng.int(0, 9)}-${rng.int(0, 9)}`,
      city,
    },
    aliases: { team: ["winner", "home"] },
    sentences: [
      "$team played against $opponent in $city and the result was $score.",
      "In $city, $team met $opponent. The score was $score.",
      "The game of $team against $opponent in $city ended $score.",
    ],
  },
  {
    fields: { name: person, sport: from("sports"), day },
    sentences: [
      "$name plays $sport every $day.",
      "Every $day $name has $sport training.",
      "On $day, $name goes to $sport.",
    ],
  },
  {
    fields: {
      dish: oneOf("tomato soup", "apple pie", "rice salad", "cheese bread", "fish stew", "lemon cake", "bean soup"),
      minutes: between(5, 120),
      people: between(1, 8),
    },
    aliases: { dish: ["meal", "recipe"], minutes: ["time", "duration"], people: ["servings"] },
    sentences: [
      "The $dish takes $minutes minutes and serves $people people.",
      "This $dish is for $people people and is ready in $minutes minutes.",
      "Cook the $dish for $minutes minutes. It is enough for $people people.",
    ],
  },
  {
    fields: {
      car: oneOf("red van", "blue truck", "old bus", "small taxi", "green tractor"),
      distance: between(3, 900),
      city,
    },
    aliases: { car: ["vehicle"], distance: ["kilometers"] },
    sentences: [
      "The $car drove $distance kilometers to $city.",
      "It took the $car all day to drive the $distance kilometers to $city.",
      "{A|The} $car is $distance kilometers away from $city.",
    ],
  },
  {
    fields: { name: person, month, day: between(1, 28) },
    sentences: [
      "$name was born on $month $day.",
      "The birthday of $name is $month $day.",
      "$name has a birthday on day $day of $month.",
    ],
  },
];

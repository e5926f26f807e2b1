// JSON asked for in free words: the wanted keys stand in ordinary sentences, beside other nouns that are no keys (the thing
// described, what it is for, what to leave out). The reply has the asked keys in the asked order, and nothing else.

import { andList, attributes, capitalised, topics, withArticle } from "./bank.ts";
import { type Conversation, exchange } from "./conversation.ts";
import { asJson, knownKeys, oneLine, subjects } from "./json-keys.ts";
import { anyWord, personName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { asTyped, say } from "./wording.ts";

const pool: readonly string[] = [...new Set([...attributes.keys(), ...knownKeys.filter((key) => !key.includes("_"))])];
const numbers = ["no", "one", "two", "three", "four", "five"];

/** The keys behind "an apple's", or behind "the". */
function bare(rng: Rng, keys: readonly string[]): string {
  const [first, ...rest] = keys as [string, ...string[]];
  return rng.pick([
    () => andList(keys),
    () => andList(keys),
    () => andList(keys.map((key) => `"${key}"`)),
    () => keys.join(" plus "),
    () => keys.join(" / "),
    () => keys.join(" + "),
    () => keys.join(", "),
    () => (rest.length === 0 ? first : `${first} as well as ${andList(rest)}`),
  ])();
}

/** The keys as the object of "with" or "include". */
function named(rng: Rng, keys: readonly string[]): string {
  const each = (make: (key: string) => string) => andList(keys.map(make));
  return rng.pick([
    () => bare(rng, keys),
    () => bare(rng, keys),
    () => each((key) => `the ${key}`),
    () => each((key) => `its ${key}`),
    () => `its ${andList(keys)}`,
    () => each(withArticle),
    () => each((key) => `${withArticle(key)} field`),
    () => `first ${keys.join(", then ")}`,
    () => each((key) => `a key called ${key}`),
    () => each((key) => `one field for the ${key}`),
    () => (keys.length === 2 ? `both ${andList(keys)}` : andList(keys)),
    () => keys.map((key) => `${key} (${rng.pick(["text", "string", "number", "short"])})`).join(", "),
  ])();
}

/** The keys as a list of their own. */
function listed(rng: Rng, keys: readonly string[]): string {
  return rng.pick([
    () => keys.map((key) => `\n- ${key}`).join(""),
    () => keys.map((key, i) => `\n${i + 1}. ${key}`).join(""),
    () => ` {${keys.map((key) => `"${key}": ...`).join(", ")}}`,
    () => ` ${keys.map((key) => `<${key}>`).join(" ")}`,
    () => ` ${keys.join(", ")}`,
    () => ` ${keys.join("; ")}`,
    () => ` [${keys.join(", ")}]`,
  ])();
}

/** What is said around the request; $w, $v: any words, $n: a name. None of it is a key. */
const contexts: readonly string[] = [
  "{My brother|My boss|My sister|A friend|Our teacher|My neighbor} {is building|runs|plans|has started} {a|some} $w {website|shop|game|club|project}.",
  "{I am writing|I'm making|We are preparing|I want to sell|I collect} {something about $w|a $w guide|a list for the $w club|things for a $w}.",
  "{This is|It is} for {a $w catalog|the $w page|my $w class|our $w party|a story about $w and $v}.",
  "$n {asked me for this|needs this for work|will read it with a program|and I are working on a $w}.",
  "{Yesterday|Last week|This morning} I {saw|read about|dreamed of|heard about} $s.",
  "{We have|I keep|There is} a database of $w and $v.",
  "{I'm bored|It is raining|I am learning to code|Let's practice}.",
  "My {app|robot|script|spreadsheet} {stores|shows|counts} $w.",
];
const leaveOut: readonly string[] = [
  "{Leave out|Skip|I don't need|No need for|Forget} the $x.",
  "{Not|No} $x{, please|}.",
  "{Without|Do not add} {a |the |any |}$x.",
  "{Nothing else|No other keys|Nothing about the $x|Only that|That's all I need}.",
];

/** $s the thing, $p the thing as an owner, $b and $k the keys in a sentence, $l the keys as a list, $c how many. */
const asks: readonly string[] = [
  "{What are|Tell me|Give me|Show me|I'd like to know|Name|Write down|Note} {the |}$b of $s{,|.|;} {as JSON|in JSON|JSON only|use JSON|JSON please}{.|}",
  "{Think of|Imagine|Picture|Take|Consider|Invent} $s. {Tell me|Give me|Return|Write|Send|I want} $k {as JSON|in JSON|in a JSON object|as a JSON object}{.|}",
  "$p $b {as JSON|in JSON|- JSON please|as a JSON object}{.|}",
  "{I want|I need|Please give me|Return|Send me|Could you write} $p $b {as JSON|in JSON|in JSON form|as one JSON object}{.|}",
  "{Describe|Sketch|Summarize|Represent|Store|Save|Register} $s {as|in} {JSON|a JSON object}, {but only|just|noting only|mentioning|covering|recording} $k{.|}",
  "{Make|Invent|Create|Come up with|Dream up} $s {for me |}and {give|tell|list|report} $k {in|as} JSON{.|}",
  "{I only care about|I'm interested in|What matters is|The important parts are|Please note} {the |}$b {of|for} $s. {Use JSON|Answer in JSON|Reply with JSON|JSON, please|Put it into JSON}{.|}",
  "{For|About|Regarding} $s{:|,} {a JSON object with|JSON with|some JSON that has|I need JSON with} $k{.|}",
  "JSON {about|for|on} $s{:|.} {It needs|Include|Add|Put in|I want|Give it} $k{.|}",
  "{Write|Return|Produce} JSON {about|for|describing} $s. {It has|The object has|There should be|I expect} {exactly |}$c {keys|fields|entries|parts}:$l",
  "{Fill this in|Complete this|Follow this form|Use this shape|Here is the form} {for|about} $s, {as JSON|in JSON}:$l",
  "$u, {please|} in JSON. {Keys|Fields|Parts|What I need}:$l",
  "{Can|Could} {I|we} {have|get|see} {$s|one example of $s} {in|as} JSON? {With|Just|Only} $k{.|, thanks.}",
  "{How would|How could} {you|one} {write|store|describe} $s in JSON {with|using} $k?",
  "Let the {answer|reply|output} be a JSON object {about|describing} $s, {and let it have|and give it|one that holds|one that tells me} $k{.|}",
  "{Answer|Reply|Respond} {in|with|using} JSON: what {is|would be} the $b of $s?",
  "{Put|Write|Save|Pack} {the |}$b of $s {into|in} {JSON|a JSON object|a small JSON object}{.|}",
  "{Someone|A customer|A visitor|A child} {asks|wants to know} about $s. {Answer|Reply} in JSON {with|giving} $k{.|}",
  "{Two things|A few things|Some facts|The basics} about $s, as JSON:$l",
  "{Give|Assign} $s $k and {return it|send it back|write it} as JSON{.|}",
];

const possessive = (subject: string) => `${subject}${subject.endsWith("s") ? "'" : "'s"}`;

export function freeJson(draw: Draw): Conversation {
  const { rng } = draw;
  let keys: string[];
  do {
    const count = rng.weighted([
      [1, 1],
      [2, 5],
      [3, 4],
      [4, 1],
    ]);
    keys = [...new Set(Array.from({ length: count }, () => (rng.chance(0.8) ? rng.pick(pool) : anyWord(rng))))];
  } while (splitOf(`json:${[...keys].sort().join()}`) !== draw.split);
  const subject = rng.weighted([
    [() => rng.pick(topics).single, 5],
    [() => rng.pick(subjects.filter((one) => /^an? /.test(one))), 3],
    [() => withArticle(anyWord(rng)), 1],
    [() => personName(rng), 1],
    [() => `my ${anyWord(rng)}`, 1],
  ])();
  const other = rng.pick(pool.filter((key) => !keys.includes(key)));
  const values = {
    s: subject,
    p: rng.chance(0.8) ? possessive(subject) : subject,
    u: capitalised(subject),
    b: bare(rng, keys),
    k: named(rng, keys),
    l: listed(rng, keys),
    c: numbers[keys.length] as string,
    w: anyWord(rng),
    v: anyWord(rng),
    n: personName(rng),
    x: other,
  };
  let prompt = capitalised(say(rng, pickWording(draw, asks), values));
  if (rng.chance(0.35)) prompt = `${capitalised(say(rng, rng.pick(contexts), values))} ${prompt}`;
  const ends = /[.?!\n]/.test(prompt.slice(-1));
  if (ends && rng.chance(0.2)) prompt += ` ${say(rng, rng.pick(leaveOut), values)}`;
  return exchange("json-keys", asTyped(rng, prompt, ends), oneLine(asJson(rng, keys)), { kind: "json", keys });
}

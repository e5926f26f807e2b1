// Freely worded requests for JSON: the keys appear in ordinary sentences beside nouns that are not keys (the thing described,
// its purpose, what to leave out). The reply has the requested keys in the requested order, and nothing else.

import { capitalised, withArticle } from "./bank.ts";
import { casualJson } from "./casual-json.ts";
import { type Conversation, exchange } from "./conversation.ts";
import { oneLine } from "./json-keys.ts";
import { bare, filled, keysAndThing, listed, named, pool, someKeys } from "./json-parts.ts";
import { anyWord, personName } from "./made-up.ts";
import type { Rng } from "./rng.ts";
import { type Draw, pickWording } from "./split.ts";
import { asTyped, say } from "./wording.ts";

const numbers = ["no", "one", "two", "three", "four", "five"];

/** Talk around the request; $w, $v: any words, $n: a name. None of it is a key. */
const contexts: readonly string[] = [
  "{My brother|My boss|My sister|A friend|Our teacher|My neighbor} {is building|runs|plans|has started} {a|some} $w {website|shop|game|club|project}.",
  "{I am writing|I'm making|We are preparing|I want to sell|I collect} {something about $w|a $w guide|a list for the $w club|things for a $w}.",
  "{This is|It is} for {a $w catalog|the $w page|my $w class|our $w party|a story about $w and $v}.",
  "$n {asked me for this|needs this for work|will read it with a program|and I are working on a $w}.",
  "{Yesterday|Last week|This morning} I {saw|read about|dreamed of|heard about} $s.",
  "{We have|I keep|There is} a database of $w and $v.",
  "{I'm bored|It is raining|I am learning to code|Let's practice}.",
  "My {app|robot|script|spreadsheet} {stores|shows|counts} $w.",
  "{I need test data|I need some sample data|We need a mock record|Help me fill my table} for {my app|a demo|the $w app|our website}.",
  "{I am a teacher|I run a small shop|I work in a library|I study $w|I work with $n}.",
  "{Hi there|Hello|Hey|Good morning}{!|.|, $n here.}",
  "{You are good at this|You helped me yesterday|I like your answers}.",
  "{The form|The page|The $w screen} {is empty|needs an example|has a gap}.",
  "{My parser|The program|The script} {breaks on plain text|reads nothing but JSON|is strict}.",
];
const leaveOut: readonly string[] = [
  "{Leave out|Skip|I don't need|No need for|Forget} the $x.",
  "{Not|No} $x{, please|}.",
  "{Without|Do not add} {a |the |any |}$x.",
  "{Nothing else|No other keys|Nothing about the $x|Only that|That's all I need}.",
  "{No explanation|No extra text|No comments|No words around it|Don't explain anything|No intro, no outro}{, please|}.",
  "{Just the object|Only the object|Only the JSON|Just the JSON}{, nothing else|, no text|}.",
  "{The values are up to you|You choose the values|Make up the values|Any values will do|Be creative with the values}.",
  "{I don't care about the $x|It does not matter what the $x is}.",
  "{The $x is already known|I already have the $x|The $x comes later}.",
];
const leaveOutEnd: readonly string[] = [
  "{Nothing else|No other keys|No explanation|No extra text|Just the object|Only JSON}{, please|}.",
  "{The values are up to you|Make up the values|Any values will do}.",
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
  "$u{, please,|,} in JSON. {Keys|Fields|Parts|What I need}:$l",
  "{Can|Could} {I|we} {have|get|see} {$s|one example of $s} {in|as} JSON? {With|Just|Only} $k{.|, thanks.}",
  "{How would|How could} {you|one} {write|store|describe} $s in JSON {with|using} $k?",
  "Let the {answer|reply|output} be a JSON object {about|describing} $s, {and let it have|and give it|one that holds|one that tells me} $k{.|}",
  "{Answer|Reply|Respond} {in|with|using} JSON: what {is|would be} the $b of $s?",
  "{Put|Write|Save|Pack} {the |}$b of $s {into|in} {JSON|a JSON object|a small JSON object}{.|}",
  "{Someone|A customer|A visitor|A child} {asks|wants to know} about $s. {Answer|Reply} in JSON {with|giving} $k{.|}",
  "{Two things|A few things|Some facts|The basics} about $s, as JSON:$l",
  "{Give|Assign} $s $k and {return it|send it back|write it} as JSON{.|}",
  "{I'd like|I want|Give me|Show me} {a|one|some} JSON {object|record|example} {for|about} $s{. The|, the} {attributes|properties|columns|entries|slots|fields} {are|should be|must be}: $b{.|}",
  "{Model|Encode|Express|Capture|Write up|Render} $s {as JSON|in JSON|as a JSON object}{. Attributes|. Properties|. Fields|. Columns|. Slots|. Entries}: $b{.|}",
  "{$u - |}{as JSON|in JSON}{, with| having| containing} $k{.|}",
  "{What would|How would} $s look {like |}as {a |one |}JSON {object|record} {with|that has} $k?",
  "{My|Our|The} {app|database|table|program|script} {needs|expects|wants|takes} JSON {for|about} $s with $k{.|}",
  "{Make|Fill|Write} {one|a single} {row|record|entry} {for|about} $s{ as JSON|, as JSON|, JSON please}{:|. Columns:|. Fields:} $b{.|}",
  "{Please use|Use} $b as {the |}{keys|fields|property names|attribute names} {of|in|for} a JSON {object|record} about $s{.|}",
  "{With|Using} {the keys|the fields|the properties|the attributes|the columns} $b, {describe|invent|represent|write} $s in JSON{.|}",
  "$b{: |; }{these|those|that} {should be|shall be|are} {the keys|the fields|the properties|what I want} in {a|the} JSON {object|reply} about $s{.|}",
  "{I would love to see|Let me see|Show} $s {written|described|expressed} {in|as} JSON, {limited to|reduced to|with only} $b{.|}",
  "{Every|Each} {record|item|entry} in my {app|shop|database} has $k. {Write|Make|Invent} one for $s {in|as} JSON{.|}",
  "{Suppose|Say|Let's say} {you met|you owned|you found|there was} $s. {What would be, in JSON,|Tell me in JSON|Write as JSON} {the |its |}$b{.|}",
  "{Generate|Create|Produce|Draft} {test data|sample data|a data record|a card} {for|about} $s{, JSON,| in JSON| as JSON} with $k{.|}",
  "{Just|Only} {the |}$b of $s, {formatted as|in the form of|packed into} JSON{.|}",
  "{JSON object|JSON record|One JSON object}{, please|}: $s, {with|holding|storing} $k{.|}",
  "{Answer|Reply|Respond} {only |}{with|in} JSON. {The subject is|It is about|Describe} $s{, and the|. The} {keys|fields|attributes|columns} are $b{.|}",
  "{Turn|Make} $s into {a |}JSON {object|record}{.|,} {keep|use|with} {only |just |}$b{.|}",
  "{I want to know|Tell me|Write} {three|some|a few} things about $s in JSON, {namely|that is|I mean} $k{.|}",
  "{Here is what I need|What I need|My wish}: JSON, {subject|topic} $s,{ keys| fields| properties|} $b{.|}",
  "{Return|Output|Print|Write} {exactly |only |}{this|one JSON object} for $s{, in JSON|, as JSON}:$l",
  "{The|Your} {reply|answer|output} {must|should|has to} {be JSON|be a JSON object|be valid JSON} {about|on} $s with {exactly |}{these|the following} {attributes|properties|columns|slots|entries|keys}:$l",
];

/** A thing as people mention it when any example will do. */
const anyOf = (rng: Rng, subject: string): string => {
  const noun = subject.replace(/^an? /, "");
  if (noun === subject || rng.chance(0.7)) return subject;
  return rng.pick([
    `any ${noun}`,
    `some ${noun}`,
    `${subject} of your choice`,
    `one ${noun}`,
    `${subject} you made up`,
  ]);
};
const possessive = (subject: string) => `${subject}${subject.endsWith("s") ? "'" : "'s"}`;

/** Number of keys -> weight. */
const counts = [
  [1, 1],
  [2, 5],
  [3, 4],
  [4, 1],
] as const;

export function freeJson(draw: Draw): Conversation {
  const { rng } = draw;
  if (rng.chance(0.34)) return casualJson(draw);
  const { keys, thing } = keysAndThing(draw, counts, 0.35, someKeys, withArticle);
  const object = filled(rng, keys);
  const subject = anyOf(rng, thing);
  const other = rng.pick(pool.filter((key) => !keys.includes(key)));
  const values = {
    s: subject,
    p: rng.chance(0.8) ? possessive(thing) : thing,
    u: capitalised(subject),
    b: bare(rng, keys),
    k: named(rng, keys, object),
    l: listed(rng, keys, object),
    c: numbers[keys.length] as string,
    w: anyWord(rng),
    v: anyWord(rng),
    n: personName(rng),
    x: other,
  };
  let prompt = capitalised(say(rng, pickWording(draw, asks), values));
  if (rng.chance(0.35)) prompt = `${capitalised(say(rng, rng.pick(contexts), values))} ${prompt}`;
  const ends = /[.?!\n]/.test(prompt.slice(-1));
  if (ends && rng.chance(0.25)) prompt += ` ${say(rng, rng.pick(leaveOut), values)}`;
  else if (prompt.includes("\n") && rng.chance(0.25))
    prompt += `\n${rng.pick(["", "\n"])}${say(rng, rng.pick(leaveOutEnd))}`;
  return exchange("json-keys", asTyped(rng, prompt, ends), oneLine(object), { kind: "json", keys });
}

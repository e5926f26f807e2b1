// The two tasks of the demo: endless prompts and a reward for every reply. The bundled model masters neither at first and
// learns both in a minute or two.

import { seededRandom } from "../../training/random.ts";

export interface DemoTask {
  name: string;
  title: string;
  /** Draws the prompts of one step. */
  prompts(count: number): string[];
  /** Between 0 and 1. */
  reward(prompt: string, reply: string): number;
  maxTokens: number;
  /** Size of a step (prompts, attempts per prompt) and its training settings. */
  batch: { prompts: number; groupSize: number; learningRate: number; accumulate: number };
}

/** Answer yes, no or maybe. "Maybe" earns most, and the prompt does not say so: the model finds out by trying. */
export function yesNoMaybe(seed: number): DemoTask {
  const random = seededRandom(seed);
  const worth: Record<string, number> = { yes: 0.5, no: 0.75, maybe: 1 };
  const words = ["yes, no or maybe", "yes or no", "no or yes", "maybe, yes or no"];
  const asks = [
    ...["Is it a good idea? $w?", "Do you like it? $w?", "Shall we go? $w?", "Is he tall? $w?", "Can it fly? $w?"],
    ...["Is the soup hot? $w?", "Are you sure? $w?", "Is the bread fresh? Choose $w.", "Has the train left? $w?"],
    ...["Will they come? $w?", "Is the box empty? Reply $w.", "Was it fun? $w?"],
  ];
  return {
    name: "maybe",
    title: "yes, no or maybe",
    maxTokens: 8,
    batch: { prompts: 12, groupSize: 8, learningRate: 4e-4, accumulate: 48 },
    // Every step asks each question once and each word list equally often, so steps are comparable.
    prompts(count) {
      const first = Math.floor(random() * words.length);
      return Array.from({ length: count }, (_, i) => {
        const turn = first + i + Math.floor(i / asks.length);
        return asks[i % asks.length]!.replace("$w", words[turn % words.length]!);
      });
    },
    reward: (_prompt, reply) => worth[reply.trim().toLowerCase().replace(/[.!]$/, "")] ?? 0,
  };
}

/** Three-digit addition: 1 for the right sum, otherwise part of 0.4 for each correct digit. */
export function addition(seed: number): DemoTask {
  const random = seededRandom(seed);
  const number = () => 100 + Math.floor(random() * 900);
  /** A sum with the given number of carries, which decide how hard it is. */
  const sum = (wanted: number): string => {
    for (;;) {
      const [a, b] = [number(), number()];
      if (carries(a, b) === wanted) return `What is ${a} + ${b}?`;
    }
  };
  return {
    name: "adder",
    title: "three-digit addition",
    maxTokens: 12,
    batch: { prompts: 32, groupSize: 8, learningRate: 5e-4, accumulate: 64 },
    // Every step has the same mix of difficulties, so steps are comparable.
    prompts: (count) => Array.from({ length: count }, (_, i) => sum(i % 4)),
    reward(prompt, reply) {
      const [a, b] = prompt.match(/\d+/g)!.map(Number) as [number, number];
      const [right, said] = [String(a + b), reply.trim()];
      if (said === right) return 1;
      if (said.length !== right.length || !/^\d+$/.test(said)) return 0;
      return (0.4 * [...right].filter((digit, i) => said[i] === digit).length) / right.length;
    },
  };
}

function carries(a: number, b: number): number {
  return [10, 100, 1000].filter((place) => (a % place) + (b % place) >= place).length;
}

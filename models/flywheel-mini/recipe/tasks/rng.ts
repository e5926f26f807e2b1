// A small seeded random source (sfc32) for the task generator. The same seed gives the same conversations on every
// machine and Node version; nothing in the generator may use Math.random or the clock.

export class Rng {
  #a: number;
  #b: number;
  #c: number;
  #d = 1;

  constructor(seed: string) {
    this.#a = hash32(`${seed}/a`);
    this.#b = hash32(`${seed}/b`);
    this.#c = hash32(`${seed}/c`);
    for (let i = 0; i < 12; i++) this.next();
  }

  /** Uniform in [0, 1). */
  next(): number {
    const t = (((this.#a + this.#b) | 0) + this.#d) | 0;
    this.#d = (this.#d + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + t) | 0;
    return (t >>> 0) / 4294967296;
  }

  /** Uniform integer in [low, high], both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Error("pick from an empty list");
    return list[Math.floor(this.next() * list.length)] as T;
  }

  shuffle<T>(list: readonly T[]): T[] {
    const out = [...list];
    for (let i = out.length - 1; i > 0; i--) {
      const j = this.int(0, i);
      [out[i], out[j]] = [out[j] as T, out[i] as T];
    }
    return out;
  }

  /** `count` different elements in random order (all of them when the list is shorter). */
  sample<T>(list: readonly T[], count: number): T[] {
    if (count * 4 > list.length) return this.shuffle(list).slice(0, count);
    const seen = new Set<number>();
    while (seen.size < count) seen.add(Math.floor(this.next() * list.length));
    return [...seen].map((index) => list[index] as T);
  }

  weighted<T>(entries: readonly (readonly [T, number])[]): T {
    let total = 0;
    for (const [, weight] of entries) total += weight;
    let at = this.next() * total;
    for (const [value, weight] of entries) {
      at -= weight;
      if (at < 0) return value;
    }
    return (entries[entries.length - 1] as readonly [T, number])[0];
  }
}

/** FNV-1a over UTF-16 units with a final avalanche: spreads similar strings over all 32 bits. */
export function hash32(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

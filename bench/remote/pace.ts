// The pace of the benchmark's engines: every stream gets its first token at once and then one at each tick, as from a
// model whose step takes this long. Both engines use it, so both give the server the same work at the same times.

export const TICK_MS = 20;
export const VOCABULARY = 6000;
/** A prompt that begins with this id asks for a token at every 25th tick only: many streams, little work. */
export const SLOW_ID = 7;
const SLOW_TICKS = 25;

/** The token at `position` of a stream: text of all kinds, never a special token. */
export function tokenAt(stream: number, position: number): number {
  return 300 + ((stream * 31 + position * 17) % (VOCABULARY - 600));
}

export class Ticker {
  readonly #onTick = new Set<() => void>();
  #ticks = 0;

  constructor() {
    setInterval(() => {
      this.#ticks++;
      for (const tick of [...this.#onTick]) tick();
    }, TICK_MS).unref();
  }

  /** Calls `tick` at once, then at every tick until it returns false; for a slow prompt, at one in SLOW_TICKS. */
  follow(prompt: readonly number[], tick: () => boolean): void {
    const every = prompt[0] === SLOW_ID ? SLOW_TICKS : 1;
    // Streams that start together come due at different ticks.
    const turn = this.#onTick.size % every;
    const once = (): void => {
      if (this.#ticks % every === turn && !tick()) this.#onTick.delete(once);
    };
    this.#onTick.add(once);
    if (!tick()) this.#onTick.delete(once);
  }
}

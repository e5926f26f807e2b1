// One direction of a connection between processes: what is sent arrives later, in order.

import type { Process, World } from "./world.ts";

export class Wire {
  readonly #world: World;
  readonly #to: Process;
  readonly #slowMs: number;
  #last = 0;

  constructor(world: World, to: Process, slowMs: number) {
    this.#world = world;
    this.#to = to;
    this.#slowMs = slowMs;
  }

  send(label: string, run: () => void): void {
    const world = this.#world;
    this.#last = Math.max(this.#last, world.now + world.chance.between(0, 10 * this.#slowMs) / 10);
    world.at(this.#to, this.#last - world.now, label, run);
  }
}

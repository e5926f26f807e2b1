// A proxy in front of an engine that cuts connections in the middle of streams.
import { FaultProxy, type Observer } from "./fault-proxy.ts";

export class CuttingProxy {
  /** Cut a connection after this many chunks of tokens; null: never. */
  cutAfter: number | null = null;
  #proxy!: FaultProxy;

  /** `url`: the server behind it. */
  static async start(url: string): Promise<CuttingProxy> {
    const own = new CuttingProxy();
    own.#proxy = await FaultProxy.start({ port: Number(new URL(url).port), host: "127.0.0.1" }, () => own.#observer());
    return own;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#proxy.port}`;
  }

  /** How many connections were cut. */
  get cuts(): number {
    return this.#proxy.cuts;
  }

  close(): Promise<void> {
    return this.#proxy.close();
  }

  #observer(): Observer {
    let chunks = 0;
    return {
      toServer: (bytes) => {
        chunks = 0;
        return { bytes, cut: false };
      },
      toClient: (bytes) => {
        let passed = "";
        for (const event of bytes.toString("latin1").split(/(?<=\n\n)/)) {
          if (event.includes('"token_ids":[')) chunks++;
          if (this.cutAfter !== null && chunks > this.cutAfter) return { bytes: latin1(passed), cut: true };
          passed += event;
        }
        return { bytes, cut: false };
      },
    };
  }
}

function latin1(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

// Whether a transaction took effect whose COMMIT got no answer. PostgreSQL gives every transaction a number and knows for
// long how each one ended. A server that crashed may use numbers again that had not reached its disk, so "committed" counts
// only if it has not crashed since.
import type pg from "pg";
import { TRANSACTION_LIMIT_MS } from "../store.ts";

/** Names a transaction for later questions. */
export interface TransactionId {
  /** 64 bits, in decimal digits. */
  number: string;
  /** Differs before and after a crash of the server. */
  life: string;
}

/** A server that recovers from a crash begins its statistics anew. One that was stopped in an orderly way keeps them. */
const LIFE = "COALESCE(CAST(EXTRACT(EPOCH FROM pg_stat_get_bgwriter_stat_reset_time()) AS TEXT), '')";

/** Selects the TransactionId of the transaction that it runs in. */
export const THIS_TRANSACTION = `SELECT CAST(pg_current_xact_id() AS TEXT) AS number, ${LIFE} AS life`;

const OUTCOME = `SELECT pg_xact_status(CAST($1 AS xid8)) AS status, ${LIFE} = $2 AS "sameLife"`;

interface Outcome {
  /** null = the server has forgotten. */
  status: "committed" | "aborted" | "in progress" | null;
  sameLife: boolean;
}

const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 250;
/** The server ends a transaction whose client is gone by then. */
const PATIENCE_MS = TRANSACTION_LIMIT_MS + 1_000;

/** Throws if nobody can tell. `ask` runs a query on another connection. */
export async function tookEffect(
  { number, life }: TransactionId,
  ask: (query: pg.QueryConfig) => Promise<unknown[]>,
): Promise<boolean> {
  const until = performance.now() + PATIENCE_MS;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, 2 * pauseMs)) {
    const [outcome] = (await ask({ text: OUTCOME, values: [number, life] }).catch(unlessInTheFuture)) as [Outcome];
    const { status, sameLife } = outcome;
    if (status === "aborted") return false;
    if (status === "committed" && sameLife) return true;
    // another transaction has its number: it was lost in the crash
    if (status === "in progress" && !sameLife) return false;
    if (status !== "in progress" || performance.now() > until) {
      throw new Error(`the database cannot tell how transaction ${number} ended`);
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** After a crash, the server may not have come to this number again. Then the transaction was lost. */
function unlessInTheFuture(error: unknown): Outcome[] {
  if ((error as { code?: unknown } | null)?.code === "22023") return [{ status: "aborted", sameLife: false }];
  throw error;
}

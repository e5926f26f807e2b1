// Data of a component from the server: asked for when it is shown, when `key` changes, and when a lost server is back.
import { useCallback, useEffect, useState } from "preact/hooks";
import { recoveries } from "../server.ts";
import { messageOf } from "../session.ts";

export interface Query<Data> {
  /** The newest answer. It stays while another is on its way. */
  data: Data | null;
  error: string | null;
  isLoading: boolean;
  reload: () => void;
}

export function useQuery<Data>(key: string, ask: (signal: AbortSignal) => Promise<Data>): Query<Data> {
  const [state, setState] = useState<Omit<Query<Data>, "reload">>({ data: null, error: null, isLoading: true });
  const [turn, setTurn] = useState(0);
  const recovery = recoveries.value;
  // `ask` is a new function with every render; `key` stands for it.
  useEffect(() => {
    const gone = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    ask(gone.signal).then(
      (data) => !gone.signal.aborted && setState({ data, error: null, isLoading: false }),
      (error: unknown) => {
        if (!gone.signal.aborted) setState(({ data }) => ({ data, error: messageOf(error), isLoading: false }));
      },
    );
    return () => gone.abort();
  }, [key, turn, recovery]);
  const reload = useCallback(() => setTurn((value) => value + 1), []);
  return { ...state, reload };
}

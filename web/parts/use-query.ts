// Data of a component from the server: asked for when it is shown, when `key` changes, and when a lost server is back.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
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
  const load = useRef(() => {});
  const recovery = recoveries.value;
  // `ask` is a new function with every render; `key` stands for it.
  useEffect(() => {
    const gone = new AbortController();
    let isBusy = false;
    let isWanted = false;
    load.current = async () => {
      isWanted = true;
      // One question at a time: whoever asks again faster than the server answers gets every answer that comes.
      if (isBusy) return;
      isBusy = true;
      while (isWanted && !gone.signal.aborted) {
        isWanted = false;
        setState((before) => ({ ...before, isLoading: true }));
        const answer = await ask(gone.signal).then(
          (data) => ({ data, error: null }),
          (error: unknown) => ({ error: messageOf(error) }),
        );
        if (!gone.signal.aborted) setState((before) => ({ ...before, ...answer, isLoading: false }));
      }
      isBusy = false;
    };
    load.current();
    return () => gone.abort();
  }, [key, recovery]);
  const reload = useCallback(() => load.current(), []);
  return { ...state, reload };
}

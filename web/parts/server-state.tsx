// One line about the server: its model and what runs. Asking for the load every few seconds also notices a server that is
// gone.
import { useEffect, useState } from "preact/hooks";
import { count } from "../format.ts";
import { noteLost } from "../server.ts";
import { facts } from "../server-facts.ts";

const LOOK_MS = 5_000;

export function ServerState() {
  const running = useLoad();
  const server = facts.value;
  return (
    <header class="server-state">
      {server !== null && (
        <>
          <b>{server.model.id}</b>
          {server.dtype !== null && <span>{server.dtype}</span>}
          <span>{count(server.limits.max_model_len, "token")} of context</span>
        </>
      )}
      {running !== null && <span>{running} running</span>}
    </header>
  );
}

function useLoad(): number | null {
  const [running, setRunning] = useState<number | null>(null);
  useEffect(() => {
    const look = async () => {
      if (document.hidden) return;
      const answer = await fetch("/load").catch(noteLost);
      if (answer?.ok) setRunning(((await answer.json()) as { server_load: number }).server_load);
    };
    void look();
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  return running;
}

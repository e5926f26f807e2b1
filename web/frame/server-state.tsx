// One line about the server: its model and what runs. Asking for the load every few seconds also notices a server that is
// gone.
import { useEffect, useState } from "preact/hooks";
import { count, percent } from "../format.ts";
import { openJobs } from "../jobs/open-jobs.ts";
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
      {running !== null && <span>{count(running, "request")} running</span>}
      <Training />
    </header>
  );
}

/** What trains at the moment; nothing if nothing does. */
function Training() {
  const all = [...openJobs.value];
  const running = all.filter(([, { status }]) => status === "RUNNING");
  if (all.length === 0) return null;
  const waiting = all.length - running.length;
  const [only] = running;
  return (
    <a href={running.length === 1 ? `/jobs/${encodeURIComponent(only![0])}` : "/jobs"}>
      {running.length === 1
        ? `1 job trains ${percent(only![1].progress)}`
        : running.length > 1
          ? `${running.length} jobs train`
          : ""}
      {waiting > 0 && `${running.length > 0 ? ", " : ""}${count(waiting, "job")} waiting`}
    </a>
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

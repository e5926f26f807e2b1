// Tells on every page that a job ended or failed, and says so in the title of the tab.
import { useEffect } from "preact/hooks";
import { titleNews } from "../parts/use-title.ts";
import { closeNotice, type EndedJob, endedJobs, useOpenJobs } from "./open-jobs.ts";

/** How long a good end is shown to those who look. A failure stays. */
const SHOWN_MS = 20_000;

export function JobNotices() {
  useOpenJobs();
  const ended = endedJobs.value;
  const newest = ended.at(-1);
  useEffect(() => {
    titleNews.value = newest === undefined ? "" : `${markOf(newest)} job ${wordOf(newest)}`;
    return () => {
      titleNews.value = "";
    };
  }, [newest]);
  return (
    <div class="job-notices" aria-live="polite">
      {ended.map((job) => (
        <Notice key={job.id} job={job} />
      ))}
    </div>
  );
}

function Notice({ job }: { job: EndedJob }) {
  const { id, status, message } = job;
  const close = () => closeNotice(id);
  useEffect(() => {
    if (status === "FAILED") return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      if (!document.hidden) timer ??= setTimeout(close, SHOWN_MS);
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, []);
  return (
    <p class={`job-notice ${status === "FAILED" ? "bad" : "good"}`}>
      <span aria-hidden="true">{markOf(job)}</span>
      <a href={`/jobs/${encodeURIComponent(id)}`} onClick={close}>
        Job {id.slice(0, 8)}
      </a>{" "}
      {wordOf(job)}
      {message !== null && `: ${message}`}
      <button
        type="button"
        class="small quiet"
        aria-label={`Close the notice of job ${id.slice(0, 8)}`}
        onClick={close}
      >
        ×
      </button>
    </p>
  );
}

function markOf({ status }: EndedJob): string {
  return status === "FAILED" ? "✗" : "✓";
}

function wordOf({ status }: EndedJob): string {
  return status === "FAILED" ? "failed" : "ended";
}

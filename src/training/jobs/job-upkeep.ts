// What a server does now and then, and when others tell it to: renew the leases of its jobs, take over those of servers
// that are gone, look for waiting jobs, and wake those who watch jobs. Others tell at once what a look finds later.

import { BackgroundWork } from "../../pacing/work.ts";
import type { TrainingContext } from "../context.ts";
import { JOB_CANCEL, JOB_NEWS, JOB_WAITING } from "./hints.ts";
import type { JobJournal } from "./job-journal.ts";
import type { JobRunner } from "./job-runner.ts";
import { sweep } from "./take-over.ts";

export class JobUpkeep {
  readonly #context: TrainingContext;
  readonly #journal: JobJournal;
  readonly #runner: JobRunner;
  readonly #work: BackgroundWork;
  readonly #stops: (() => void)[] = [];

  constructor(context: TrainingContext, journal: JobJournal, runner: JobRunner) {
    this.#context = context;
    this.#journal = journal;
    this.#runner = runner;
    this.#work = new BackgroundWork((what, error) => context.log.error(what, { error }));
  }

  start(): void {
    const { hints, times, server } = this.#context;
    this.#work.every(times.renew, "renewing leases", () => this.#runner.renew());
    this.#work.every(times.sweep, "looking for expired leases", () => this.#sweep());
    // nobody else changes anything on a store of its own
    if (server.alone) return;
    this.#work.every(times.poll, "looking for jobs", async () => {
      this.#journal.look();
      await this.#runner.pump();
    });
    this.#stops.push(
      hints.listen(JOB_NEWS, (jobId) => this.#journal.look(jobId || undefined)),
      hints.listen(JOB_WAITING, () => this.#work.start("looking for jobs", () => this.#runner.pump())),
      hints.listen(JOB_CANCEL, (jobId) =>
        // a renewal sees what was not heard
        this.#work.start("cancelling a job", () => (jobId === "" ? this.#runner.renew() : this.#cancel(jobId))),
      ),
    );
  }

  /** Comes after the runner has closed: until then its jobs need their leases. */
  async close(): Promise<void> {
    for (const stop of this.#stops.splice(0)) stop();
    await this.#work.close();
  }

  async #cancel(jobId: string): Promise<void> {
    await this.#runner.cancelHere(jobId, "cancelled");
  }

  #sweep(): Promise<void> {
    return sweep(this.#context, this.#journal, (jobId) => this.#runner.runs(jobId));
  }
}

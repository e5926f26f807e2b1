// Tags and notes on models and jobs, bounded per workspace.

import type { NoteRecord } from "../store/tables/notes.ts";
import type { TrainingContext } from "./context.ts";
import { TrainingError } from "./training-error.ts";

/** Of one workspace. With the bounds of one note (api/training/notes.route.ts), 12 MB at the most. */
const MOST_NOTES = 2_000;

export class Notes {
  readonly #context: Pick<TrainingContext, "noteTable" | "transaction">;

  constructor(context: Pick<TrainingContext, "noteTable" | "transaction">) {
    this.#context = context;
  }

  list(...query: Parameters<TrainingContext["noteTable"]["list"]>): Promise<NoteRecord[]> {
    return this.#context.noteTable.list(...query);
  }

  /** Without tags and text there is no note. The model may have been deleted meanwhile. */
  async put(note: Omit<NoteRecord, "updatedAt">): Promise<NoteRecord> {
    const row = { ...note, updatedAt: new Date().toISOString() };
    const isEmpty = note.tags.length === 0 && note.text === "";
    await this.#context.transaction(async ({ noteTable, modelTable }) => {
      if (isEmpty) return noteTable.remove(note.subject);
      if ((await modelTable.get(note.modelId)) === null) throw new TrainingError("unknown_model", { id: note.modelId });
      const isNew = !(await noteTable.has(note.subject));
      if (isNew && (await noteTable.count(note.owner)) >= MOST_NOTES) {
        throw new TrainingError("too_many_notes", { limit: MOST_NOTES });
      }
      await noteTable.put(row);
    });
    return row;
  }
}

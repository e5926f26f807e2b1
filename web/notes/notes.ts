// Tags and notes of the workspace's policies and jobs. The server keeps them; a page asks for all of them at once.
import { type Query, useQuery } from "../parts/use-query.ts";
import { callJson, getJson } from "../server.ts";

export interface Note {
  /** Of the policy or the job. */
  id: string;
  tags: string[];
  text: string;
  updated_at: string;
}

/** By the ids of policies and jobs. */
export type Notes = ReadonlyMap<string, Note>;

export const NO_NOTES: Notes = new Map();
const AT_ONCE = 1000;

export function useNotes(): Query<Notes> {
  return useQuery("notes", async (signal) => {
    const found = new Map<string, Note>();
    for (let after: string | null = null; ; ) {
      const query = { limit: AT_ONCE, after };
      const page: { data: Note[]; has_more: boolean } = await getJson("/preview/notes", { query, signal });
      for (const note of page.data) found.set(note.id, note);
      after = page.data.at(-1)?.id ?? null;
      if (!page.has_more || after === null) return found;
    }
  });
}

/** `path`: of the policy or the job, below /v1. */
export function saveNote(path: string, note: Pick<Note, "tags" | "text">): Promise<Note> {
  return callJson<Note>("PUT", `${path}/note`, { body: note });
}

/** As they are typed: "good, sweep-3". */
export function tagsFrom(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((tag) => tag !== ""))];
}

// Routes for tags and notes on models and jobs, for people who read them later.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { Type } from "typebox";
import type { NoteRecord } from "../../store/tables/notes.ts";
import type { TrainingService } from "../../training/service.ts";
import { principalOf, readableBy } from "../http/auth.ts";
import { type ById, route } from "../route.ts";
import { Moment, orNull, Uuid } from "../schema/body.ts";
import { listOf, page, pageOf } from "../schema/list.ts";
import { ownModel } from "./params.ts";
import { readQuery, readSmallBody } from "./validation.ts";

const Tag = Type.String({
  pattern: String.raw`^[^\s,\p{Cc}\p{Cs}]{1,40}$`,
  description: "1 to 40 characters without spaces and commas",
});

const NewNoteBody = Type.Object(
  {
    tags: orNull(Type.Array(Tag, { maxItems: 10 }), { default: [] }),
    text: orNull(Type.String({ maxLength: 2000, pattern: String.raw`^[^\0\p{Cs}]*$` }), { default: "" }),
  },
  { title: "NewNote" },
);

const NoteBody = Type.Object(
  {
    id: Type.String({ format: "uuid", description: "Of the model or job." }),
    model_id: Uuid,
    tags: Type.Array(Type.String()),
    text: Type.String(),
    updated_at: Moment,
  },
  { title: "Note" },
);
const NoteList = listOf(NoteBody, "NoteList");

const USUAL_COUNT = 100;
const NotePage = pageOf(1000, USUAL_COUNT);

export function registerNotes(app: FastifyInstance, training: TrainingService): void {
  app.get(
    "/v1/preview/notes",
    route("training", "Tags and notes of the workspace, by the ids of their models and jobs", {
      query: NotePage,
      reply: NoteList,
    }),
    async (request) => {
      const { after, limit } = readQuery(NotePage, request.query);
      const count = limit ?? USUAL_COUNT;
      const found = await training.notes.list(readableBy(principalOf(request)), after ?? null, count + 1);
      return page(found, count, present);
    },
  );

  const write = async (request: FastifyRequest, subject: string, modelId: string) => {
    const { tags, text } = readSmallBody(NewNoteBody, request.body);
    const { owner } = await ownModel(training, modelId, principalOf(request));
    const note = { subject, modelId, owner, tags: [...new Set(tags ?? [])], text: text ?? "" };
    return present(await training.notes.put(note));
  };

  app.put<ById>(
    "/v1/preview/models/:id/note",
    route("training", "Tag a model or a training run, and write a note on it", { body: NewNoteBody, reply: NoteBody }),
    (request) => write(request, request.params.id, request.params.id),
  );

  app.put<ById>(
    "/v1/preview/training-jobs/:id/note",
    route("training", "Tag a training job, and write a note on it", { body: NewNoteBody, reply: NoteBody }),
    async (request) => {
      const { id, modelId } = await training.jobs.owned(request.params.id, readableBy(principalOf(request)));
      return write(request, id, modelId);
    },
  );
}

function present({ subject, modelId, tags, text, updatedAt }: NoteRecord) {
  return { id: subject, model_id: modelId, tags, text, updated_at: updatedAt };
}

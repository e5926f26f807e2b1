// The types of src/client/types.ts against the schemas of the server, both ways. The compiler compares them (`npm run lint`).
import type { Static, TSchema } from "typebox";
import { expectTypeOf, it } from "vitest";
import type { CodeBody, MeBody, PrincipalBody } from "../../../src/api/access/access.route.ts";
import type { ChatReply } from "../../../src/api/dialects/chat/chat.schema.ts";
import type { EngineBody } from "../../../src/api/serving/engine-monitor.ts";
import type { ServerBody } from "../../../src/api/serving/server-info.route.ts";
import type { RlOptions, SftOptions } from "../../../src/api/training/job-options.ts";
import type * as training from "../../../src/api/training/training.schema.ts";
import type { ExampleBody, TrajectoryBody, TrajectoryGroupBody } from "../../../src/api/training/trajectory.schema.ts";
import type * as client from "../../../src/client/types.ts";

/** Without "and any other field". */
type Named<T> = { [Key in keyof T as string extends Key ? never : Key]: T[Key] };
type Unknown<Client, Schema extends TSchema> = Exclude<keyof Named<Client>, keyof Static<Schema>>;

/** Any part of it, so that the client may leave fields out. */
type Part<T> = T extends object ? { [Key in keyof T]?: Part<T[Key]> } : T;

/** What the server sends fits the client's type, which names nothing else. */
type Reads<Client, Schema extends TSchema> = [
  Static<Schema> extends Client ? "fits" : "does not fit",
  Named<Client> extends Part<Static<Schema>> ? "is sent" : "is not sent",
  Unknown<Client, Schema>,
];

/** What the client sends fits the server's schema, which knows all of it. */
type Writes<Client, Schema extends TSchema> = [
  Named<Client> extends Static<Schema> ? "fits" : "does not fit",
  Unknown<Client, Schema>,
];

it("reads what the server sends", () => {
  type Is = ["fits", "is sent", never];
  expectTypeOf<Reads<client.Principal, typeof PrincipalBody>>().toEqualTypeOf<Is>();
  expectTypeOf<Reads<client.Me, typeof MeBody>>().toEqualTypeOf<Is>();
  expectTypeOf<Reads<client.SessionCode, typeof CodeBody>>().toEqualTypeOf<Is>();
  expectTypeOf<Reads<client.ServerInfo, typeof ServerBody>>().toEqualTypeOf<Is>();
  expectTypeOf<Reads<client.EngineState, typeof EngineBody>>().toEqualTypeOf<Is>();
  expectTypeOf<Reads<client.TrainableModel, typeof training.TrainableModelBody>>().toEqualTypeOf<Is>();
  expectTypeOf<Reads<client.ServerStatus, typeof training.ServerStatusBody>>().toEqualTypeOf<Is>();
  expectTypeOf<Reads<client.Checkpoint, typeof training.CheckpointBody>>().toEqualTypeOf<Is>();
  expectTypeOf<Reads<client.DeletedCheckpoints, typeof training.DeletedCheckpoints>>().toEqualTypeOf<Is>();
  expectTypeOf<Reads<client.TrainingJob, typeof training.JobBody>>().toEqualTypeOf<Is>();
  // it takes more than is sent: the data of an event as its type says, and any field of a message
  expectTypeOf<Reads<Omit<client.TrainingEvent, "data">, typeof training.EventBody>>().toEqualTypeOf<Is>();
  expectTypeOf<Static<typeof ChatReply>>().toExtend<client.ChatCompletion>();
});

it("sends what the server reads", () => {
  type Is = ["fits", never];
  // messages and metrics are read field by field, metadata of groups as it was sent
  type Loose = "messages_and_choices" | "additional_histories" | "metrics" | "tools" | "messages";
  expectTypeOf<Writes<Omit<client.Trajectory, Loose>, typeof TrajectoryBody>>().toEqualTypeOf<Is>();
  expectTypeOf<Unknown<client.Trajectory, typeof TrajectoryBody>>().toBeNever();
  expectTypeOf<Unknown<client.TrajectoryGroup, typeof TrajectoryGroupBody>>().toEqualTypeOf<"metadata">();
  expectTypeOf<Unknown<client.SftExample, typeof ExampleBody>>().toBeNever();
  expectTypeOf<Writes<client.TrainingConfig, typeof RlOptions>>().toEqualTypeOf<Is>();
  expectTypeOf<Writes<client.SftConfig, typeof SftOptions>>().toEqualTypeOf<Is>();
});

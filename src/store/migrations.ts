// The schema, as a list of migrations. A migration that was released never changes; every change is a new one at the
// end. The position in the list is the version number. A migration only adds, so that servers of the version before can
// go on while others are updated.

/** The SQL has no parameters and may have several statements. */
export interface Migration {
  name: string;
  sqlite: string;
  /** Only where PostgreSQL needs other words; else it is made from the SQL of SQLite. */
  postgres?: string;
}

/** Numbers have 64 bits and text sorts by bytes, as in SQLite. */
export function forPostgres(sql: string): string {
  return sql
    .replaceAll("INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY")
    .replaceAll(/\bINTEGER\b/g, "BIGINT")
    .replaceAll(/\bREAL\b/g, "DOUBLE PRECISION")
    .replaceAll(/\bTEXT\b/g, 'TEXT COLLATE "C"');
}

const training: Migration = {
  name: "models, steps, jobs and events of training",
  sqlite: `
    CREATE TABLE models (
      id TEXT PRIMARY KEY,
      owner TEXT NOT NULL,
      entity TEXT NOT NULL,
      project TEXT NOT NULL,
      name TEXT NOT NULL,
      base_model TEXT NOT NULL,
      lora_rank INTEGER NOT NULL,
      lora_alpha REAL NOT NULL,
      next_step INTEGER NOT NULL,
      created_at TEXT NOT NULL,
      UNIQUE (owner, entity, project, name)
    );
    CREATE TABLE steps (
      id TEXT PRIMARY KEY,
      model_id TEXT NOT NULL REFERENCES models (id) ON DELETE CASCADE,
      step INTEGER NOT NULL,
      job_id TEXT,
      bytes INTEGER NOT NULL,
      metrics TEXT NOT NULL,
      created_at TEXT NOT NULL,
      UNIQUE (model_id, step)
    );
    CREATE TABLE jobs (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      model_id TEXT NOT NULL,
      owner TEXT NOT NULL,
      kind TEXT NOT NULL,
      status TEXT NOT NULL,
      progress REAL,
      error_message TEXT,
      config TEXT NOT NULL,
      attempts INTEGER NOT NULL DEFAULT 0,
      cancel_requested INTEGER NOT NULL DEFAULT 0,
      from_step INTEGER,
      to_step INTEGER,
      report TEXT,
      idempotency_key TEXT,
      request_hash TEXT,
      training_start TEXT,
      training_end TEXT,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL
    );
    CREATE INDEX jobs_by_status ON jobs (status, seq);
    CREATE INDEX jobs_by_owner ON jobs (owner, seq);
    CREATE INDEX jobs_by_model ON jobs (model_id, seq);
    CREATE UNIQUE INDEX jobs_by_idempotency_key ON jobs (owner, idempotency_key) WHERE idempotency_key IS NOT NULL;
    CREATE TABLE job_events (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
      type TEXT NOT NULL,
      data TEXT NOT NULL,
      created_at TEXT NOT NULL
    );
    CREATE INDEX job_events_by_job ON job_events (job_id, seq);
  `,
};

const tokens: Migration = {
  name: "access tokens",
  // hash: SHA-256 of the token, hex. scopes: space-separated. Times: Unix seconds; NULL = never.
  sqlite: `
    CREATE TABLE tokens (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL,
      hash TEXT NOT NULL,
      scopes TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      expires_at INTEGER,
      revoked_at INTEGER
    );
  `,
};

const deletedModels: Migration = {
  name: "jobs and events of deleted models",
  // since this version they are deleted with their model
  sqlite: "DELETE FROM jobs WHERE model_id NOT IN (SELECT id FROM models);",
};

const rewardSpreads: Migration = {
  name: "the spread of rewards of a job",
  // before, only the step had it, until the step was pruned or the metric was overwritten
  sqlite: `
    ALTER TABLE jobs ADD COLUMN reward_std_dev REAL;
    UPDATE jobs SET reward_std_dev = (
      SELECT json_extract(metrics, '$."train/reward_std_dev"') FROM steps
      WHERE steps.model_id = jobs.model_id AND steps.step = jobs.to_step
    ) WHERE to_step IS NOT NULL;
  `,
  postgres: "ALTER TABLE jobs ADD COLUMN reward_std_dev DOUBLE PRECISION;", // no jobs are there yet
};

const runs: Migration = {
  name: "training runs",
  // A run is a model that its client trains operation by operation; the operations are jobs. spec: JSON as the client
  // sent it. request_id: of the request that made the run.
  sqlite: `
    CREATE TABLE runs (
      model_id TEXT PRIMARY KEY REFERENCES models (id) ON DELETE CASCADE,
      owner TEXT NOT NULL,
      request_id TEXT NOT NULL,
      name TEXT,
      spec TEXT NOT NULL,
      closed INTEGER NOT NULL DEFAULT 0,
      UNIQUE (owner, request_id)
    );
    CREATE UNIQUE INDEX runs_by_name ON runs (owner, name) WHERE name IS NOT NULL;
  `,
};

const modelOrder: Migration = {
  name: "the order of models",
  // A column of its own: a rowid may change with VACUUM, and other databases have none. A table that others refer to
  // cannot be made again with another key, so a trigger numbers new rows.
  sqlite: `
    ALTER TABLE models ADD COLUMN seq INTEGER;
    UPDATE models SET seq = rowid;
    CREATE UNIQUE INDEX models_by_seq ON models (seq);
    CREATE TRIGGER models_get_seq AFTER INSERT ON models WHEN NEW.seq IS NULL BEGIN
      UPDATE models SET seq = (SELECT COALESCE(MAX(seq), 0) + 1 FROM models) WHERE id = NEW.id;
    END;
  `,
  postgres: `
    ALTER TABLE models ADD COLUMN seq BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE;
    CREATE INDEX models_by_name ON models (name);
  `,
};

const stepFiles: Migration = {
  name: "the files of steps",
  // folder: inside the folder of the model; NULL = "step-N", as before. digest: SHA-256 of the files, hex; NULL = from
  // before.
  sqlite: "ALTER TABLE steps ADD COLUMN folder TEXT; ALTER TABLE steps ADD COLUMN digest TEXT;",
};

const leaseTables = `
    ALTER TABLE jobs ADD COLUMN worker TEXT;
    ALTER TABLE jobs ADD COLUMN lease_until INTEGER;
    ALTER TABLE jobs ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
    CREATE UNIQUE INDEX jobs_one_running ON jobs (model_id) WHERE status = 'RUNNING';
    CREATE INDEX jobs_open ON jobs (model_id, seq) WHERE status IN ('PENDING', 'RUNNING');
    CREATE TABLE servers (
      id TEXT PRIMARY KEY,
      role TEXT NOT NULL,
      address TEXT NOT NULL,
      version TEXT NOT NULL,
      seen_at INTEGER NOT NULL,
      facts TEXT NOT NULL
    );
  `;

const leases: Migration = {
  name: "leases of running jobs, and servers",
  // worker: id of the server that runs the job. Times: milliseconds since 1970 by the clock of the database. The view
  // gives that clock the same name everywhere. facts: JSON.
  sqlite: `
    CREATE VIEW clock AS SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS now_ms;
    ${leaseTables}
  `,
  postgres: `
    CREATE VIEW clock AS SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now_ms;
    ${forPostgres(leaseTables)}
  `,
};

const ownersByStatus: Migration = {
  name: "jobs of an owner by status",
  sqlite: "CREATE INDEX jobs_by_owner_and_status ON jobs (owner, status, seq);",
};

const removedSteps: Migration = {
  name: "steps whose files are still to be deleted",
  // folder: below the folder of all models. step: NULL = the model as a whole. removed_at: milliseconds since 1970.
  sqlite: `
    CREATE TABLE removed_steps (
      folder TEXT PRIMARY KEY,
      model_id TEXT NOT NULL,
      step INTEGER,
      removed_at INTEGER NOT NULL
    );
  `,
};

const storage: Migration = {
  name: "which folder has the files",
  // One row. database_id: of this database. folder_id: of the folder of --storage; NULL = none was used yet.
  sqlite: "CREATE TABLE storage (id INTEGER PRIMARY KEY, database_id TEXT NOT NULL, folder_id TEXT);",
};

const workspaces: Migration = {
  name: "workspaces",
  // entity: of models that are registered without one. tokens.workspace: NULL = made by an older version while servers
  // are updated; its workspace has its own id. created_at: Unix seconds. Every token gets a workspace with its own id, which
  // owns what the token owned.
  sqlite: `
    CREATE TABLE workspaces (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      entity TEXT NOT NULL,
      created_at INTEGER NOT NULL
    );
    ALTER TABLE tokens ADD COLUMN workspace TEXT;
    INSERT INTO workspaces (id, name, entity, created_at)
      SELECT id, CASE
        WHEN name = '' OR name LIKE 'api-key-%'
          OR EXISTS (SELECT 1 FROM tokens AS other WHERE other.id <> tokens.id AND other.name = tokens.name)
          OR EXISTS (SELECT 1 FROM tokens AS other WHERE other.name || '-' || other.id = tokens.name)
        THEN name || '-' || id ELSE name END, CASE WHEN name = '' THEN id ELSE name END, created_at
      FROM tokens;
    UPDATE tokens SET workspace = id;
  `,
};

const sessions: Migration = {
  name: "sessions of browsers",
  // Of token_id, key_hash and workspace one is set: who the session stands for. Hashes: SHA-256, hex. Times: Unix
  // seconds; until: when the session ends at the latest.
  sqlite: `
    CREATE TABLE session_codes (
      hash TEXT PRIMARY KEY,
      token_id TEXT,
      key_hash TEXT,
      workspace TEXT,
      expires_at INTEGER NOT NULL,
      until INTEGER NOT NULL
    );
    CREATE TABLE sessions (
      hash TEXT PRIMARY KEY,
      token_id TEXT,
      key_hash TEXT,
      workspace TEXT,
      expires_at INTEGER NOT NULL
    );
  `,
};

const listColumns = `
    ALTER TABLE models ADD COLUMN forked_from TEXT;
    ALTER TABLE models ADD COLUMN forked_step INTEGER;
    ALTER TABLE steps ADD COLUMN reward REAL;
    ALTER TABLE jobs ADD COLUMN totals TEXT;
    ALTER TABLE jobs ADD COLUMN gradient_steps INTEGER;
  `;

const lists: Migration = {
  name: "what lists of models, steps and jobs show",
  // forked_from: id of a model, which may be gone. reward: "train/reward" of the metrics. totals: JSON of JobTotals.
  // gradient_steps: how many the job has in all; NULL = not known yet, or ended before this version.
  sqlite: `${listColumns} UPDATE steps SET reward = json_extract(metrics, '$."train/reward"');`,
  postgres: `
    ${forPostgres(listColumns)}
    UPDATE steps SET reward = CAST(metrics::json ->> 'train/reward' AS DOUBLE PRECISION);
  `,
};

const news: Migration = {
  name: "news",
  // deleted_at: milliseconds since 1970. Rows stay for a day.
  sqlite: `
    CREATE INDEX steps_by_time ON steps (created_at);
    CREATE TABLE deleted_models (id TEXT PRIMARY KEY, owner TEXT NOT NULL, deleted_at INTEGER NOT NULL);
    CREATE INDEX deleted_models_by_time ON deleted_models (deleted_at);
  `,
};

const tokenUse: Migration = {
  name: "when tokens were used last",
  // Unix seconds; NULL = never, or before this version.
  sqlite: "ALTER TABLE tokens ADD COLUMN last_used_at INTEGER;",
};

const responses: Migration = {
  name: "replies of the Responses API",
  // owner: a workspace. previous_id: a response that may be gone. used_at: milliseconds since 1970. bytes: of response and
  // input, which are JSON.
  sqlite: `
    CREATE TABLE responses (
      id TEXT PRIMARY KEY,
      owner TEXT NOT NULL,
      previous_id TEXT,
      used_at INTEGER NOT NULL,
      bytes INTEGER NOT NULL,
      response TEXT NOT NULL,
      input TEXT NOT NULL
    );
    CREATE INDEX responses_by_use ON responses (used_at);
    CREATE INDEX responses_by_owner ON responses (owner, used_at, bytes);
  `,
};

const storedTables = `
    CREATE TABLE stored_responses (
      id TEXT PRIMARY KEY,
      owner TEXT NOT NULL,
      previous_id TEXT,
      used_at INTEGER NOT NULL,
      bytes INTEGER NOT NULL,
      inputs INTEGER NOT NULL,
      items INTEGER NOT NULL,
      item_bytes INTEGER NOT NULL,
      response_bytes INTEGER NOT NULL,
      response TEXT NOT NULL
    );
    CREATE INDEX stored_responses_by_use ON stored_responses (used_at);
    CREATE INDEX stored_responses_by_owner ON stored_responses (owner, used_at, id, bytes);
    CREATE TABLE stored_items (
      response_id TEXT NOT NULL REFERENCES stored_responses (id) ON DELETE CASCADE,
      position INTEGER NOT NULL,
      item_id TEXT NOT NULL,
      bytes INTEGER NOT NULL,
      item TEXT,
      PRIMARY KEY (response_id, position)
    );
    CREATE INDEX stored_items_by_id ON stored_items (response_id, item_id);
    CREATE TABLE stored_bytes (owner TEXT PRIMARY KEY, bytes INTEGER NOT NULL);
  `;

const storedTotals = `
    UPDATE stored_responses SET
      items = (SELECT COUNT(*) FROM stored_items WHERE response_id = stored_responses.id),
      item_bytes = (SELECT COALESCE(SUM(bytes), 0) FROM stored_items WHERE response_id = stored_responses.id);
    UPDATE stored_responses SET bytes = 400 + 150 * items + response_bytes + item_bytes;
    INSERT INTO stored_bytes SELECT owner, SUM(bytes) FROM stored_responses GROUP BY owner;
    DELETE FROM responses;
  `;

const storedItems: Migration = {
  name: "items of stored responses",
  // owner: a workspace. previous_id: a response that may be gone. used_at: milliseconds since 1970. bytes: all that the response
  // takes. inputs: how many of its items are input; they come first. item_bytes, response_bytes: of texts. item: JSON; NULL = a
  // reference to item_id. stored_bytes: of a workspace. Responses of more than 32 MiB are left behind.
  // PostgreSQL cannot look into JSON with U+0000.
  sqlite: `
    ${storedTables}
    INSERT INTO stored_responses
      SELECT id, owner, previous_id, used_at, bytes, 0, 0, 0, LENGTH(CAST(response AS BLOB)), response
      FROM responses WHERE bytes <= 33554432;
    INSERT INTO stored_items
      SELECT responses.id, key, COALESCE(json_extract(value, '$.id'), ''), LENGTH(CAST(value AS BLOB)), value
      FROM responses, json_each(responses.input) WHERE responses.bytes <= 33554432;
    UPDATE stored_responses SET inputs = (SELECT COUNT(*) FROM stored_items WHERE response_id = stored_responses.id);
    INSERT INTO stored_items
      SELECT stored_responses.id, inputs + key, COALESCE(json_extract(value, '$.id'), ''), LENGTH(CAST(value AS BLOB)), value
      FROM stored_responses, json_each(response, '$.output');
    ${storedTotals}
  `,
  postgres: `
    ${forPostgres(storedTables)}
    INSERT INTO stored_responses
      SELECT id, owner, previous_id, used_at, bytes, 0, 0, 0, OCTET_LENGTH(response), response
      FROM responses WHERE bytes <= 33554432;
    INSERT INTO stored_items
      SELECT responses.id, place - 1, COALESCE(value ->> 'id', ''), OCTET_LENGTH(value::text), value::text
      FROM responses, json_array_elements(REPLACE(input, '\\u0000', '\\ufffd')::json) WITH ORDINALITY AS list (value, place) WHERE responses.bytes <= 33554432;
    UPDATE stored_responses SET inputs = (SELECT COUNT(*) FROM stored_items WHERE response_id = stored_responses.id);
    INSERT INTO stored_items
      SELECT stored_responses.id, inputs + place - 1, COALESCE(value ->> 'id', ''), OCTET_LENGTH(value::text), value::text
      FROM stored_responses, json_array_elements(REPLACE(response, '\\u0000', '\\ufffd')::json -> 'output') WITH ORDINALITY AS list (value, place);
    ${storedTotals}
  `,
};

const accounts: Migration = {
  name: "bytes of workspaces",
  // All in bytes. jobs.open_bytes: its data and what it will leave, while it is open. gradient_bytes: that wait for an
  // optimizer step. result_bytes: what its row, report, events and curves take. accounts: locked by whoever makes one larger.
  // reservations.until: milliseconds since 1970 by the clock of the database.
  sqlite: `
    ALTER TABLE steps ADD COLUMN metric_bytes INTEGER NOT NULL DEFAULT 0;
    UPDATE steps SET metric_bytes = OCTET_LENGTH(metrics);
    ALTER TABLE removed_steps ADD COLUMN owner TEXT;
    ALTER TABLE removed_steps ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE jobs ADD COLUMN open_bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE jobs ADD COLUMN gradient_bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE jobs ADD COLUMN record_bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE jobs ADD COLUMN result_bytes INTEGER NOT NULL DEFAULT 0;
    UPDATE jobs SET result_bytes = 2048 + OCTET_LENGTH(config) + COALESCE(OCTET_LENGTH(report), 0) + 2048 * COALESCE(gradient_steps, 0);
    CREATE INDEX steps_by_bytes ON steps (model_id, bytes, metric_bytes);
    CREATE INDEX jobs_by_bytes ON jobs (owner, status, open_bytes, gradient_bytes, record_bytes, result_bytes);
    CREATE TABLE accounts (owner TEXT PRIMARY KEY, changes INTEGER NOT NULL);
    CREATE TABLE reservations (
      id TEXT PRIMARY KEY,
      owner TEXT NOT NULL,
      server TEXT NOT NULL,
      bytes INTEGER NOT NULL,
      until INTEGER NOT NULL
    );
    CREATE INDEX reservations_by_owner ON reservations (owner, bytes);
  `,
};

const modelNames: Migration = {
  name: "models by name",
  // PostgreSQL has had it from the beginning.
  sqlite: "CREATE INDEX models_by_name ON models (name);",
  postgres: "",
};

const notes: Migration = {
  name: "notes",
  // subject: id of the model or of a job of it. tags: JSON.
  sqlite: `
    CREATE TABLE notes (
      subject TEXT PRIMARY KEY,
      model_id TEXT NOT NULL REFERENCES models (id) ON DELETE CASCADE,
      owner TEXT NOT NULL,
      tags TEXT NOT NULL,
      text TEXT NOT NULL,
      updated_at TEXT NOT NULL
    );
    CREATE INDEX notes_by_owner ON notes (owner, subject);
    CREATE INDEX notes_by_model ON notes (model_id);
  `,
};

export const MIGRATIONS: readonly Migration[] = [
  training,
  tokens,
  deletedModels,
  rewardSpreads,
  runs,
  modelOrder,
  stepFiles,
  leases,
  ownersByStatus,
  removedSteps,
  storage,
  workspaces,
  sessions,
  lists,
  news,
  tokenUse,
  responses,
  storedItems,
  accounts,
  modelNames,
  notes,
];

/** Why a program does not use a database that a newer one has changed. `option`: the one that chooses the database. */
export function newerSchema(version: number, known: number, option: string): string {
  return (
    `the database has schema version ${version}, newer than this program knows (${known}): ` +
    `start the newer version that wrote it, or choose another ${option}`
  );
}

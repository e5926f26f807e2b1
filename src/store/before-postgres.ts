// The migrations from before there was a store in PostgreSQL. They belong at the beginning of the list in migrations.ts.

interface BeforePostgres {
  name: string;
  sqlite: string;
}

const training: BeforePostgres = {
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

const tokens: BeforePostgres = {
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

const deletedModels: BeforePostgres = {
  name: "jobs and events of deleted models",
  // since this version they are deleted with their model
  sqlite: "DELETE FROM jobs WHERE model_id NOT IN (SELECT id FROM models);",
};

const rewardSpreads: BeforePostgres = {
  name: "the spread of rewards of a job",
  // before, only the step had it, until the step was pruned or the metric was overwritten
  sqlite: `
    ALTER TABLE jobs ADD COLUMN reward_std_dev REAL;
    UPDATE jobs SET reward_std_dev = (
      SELECT json_extract(metrics, '$."train/reward_std_dev"') FROM steps
      WHERE steps.model_id = jobs.model_id AND steps.step = jobs.to_step
    ) WHERE to_step IS NOT NULL;
  `,
};

const runs: BeforePostgres = {
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

const modelOrder: BeforePostgres = {
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
};

export const BEFORE_POSTGRES: readonly BeforePostgres[] = [
  training,
  tokens,
  deletedModels,
  rewardSpreads,
  runs,
  modelOrder,
];

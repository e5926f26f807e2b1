// The tables with which PostgreSQL begins. SQLite came to the same ones through its first migrations. Text sorts by bytes
// there, so here too.

const TEXT = 'TEXT COLLATE "C"';
const SEQ = "BIGINT GENERATED ALWAYS AS IDENTITY";

export const POSTGRES_BASELINE = `
  CREATE TABLE models (
    id ${TEXT} PRIMARY KEY,
    owner ${TEXT} NOT NULL,
    entity ${TEXT} NOT NULL,
    project ${TEXT} NOT NULL,
    name ${TEXT} NOT NULL,
    base_model ${TEXT} NOT NULL,
    lora_rank BIGINT NOT NULL,
    lora_alpha DOUBLE PRECISION NOT NULL,
    next_step BIGINT NOT NULL,
    created_at ${TEXT} NOT NULL,
    seq ${SEQ} UNIQUE,
    UNIQUE (owner, entity, project, name)
  );
  CREATE INDEX models_by_name ON models (name);
  CREATE TABLE steps (
    id ${TEXT} PRIMARY KEY,
    model_id ${TEXT} NOT NULL REFERENCES models (id) ON DELETE CASCADE,
    step BIGINT NOT NULL,
    job_id ${TEXT},
    bytes BIGINT NOT NULL,
    metrics ${TEXT} NOT NULL,
    created_at ${TEXT} NOT NULL,
    UNIQUE (model_id, step)
  );
  CREATE TABLE jobs (
    seq ${SEQ} PRIMARY KEY,
    id ${TEXT} NOT NULL UNIQUE,
    model_id ${TEXT} NOT NULL,
    owner ${TEXT} NOT NULL,
    kind ${TEXT} NOT NULL,
    status ${TEXT} NOT NULL,
    progress DOUBLE PRECISION,
    error_message ${TEXT},
    config ${TEXT} NOT NULL,
    attempts BIGINT NOT NULL DEFAULT 0,
    cancel_requested BIGINT NOT NULL DEFAULT 0,
    from_step BIGINT,
    to_step BIGINT,
    report ${TEXT},
    idempotency_key ${TEXT},
    request_hash ${TEXT},
    training_start ${TEXT},
    training_end ${TEXT},
    created_at ${TEXT} NOT NULL,
    updated_at ${TEXT} NOT NULL,
    reward_std_dev DOUBLE PRECISION
  );
  CREATE INDEX jobs_by_status ON jobs (status, seq);
  CREATE INDEX jobs_by_owner ON jobs (owner, seq);
  CREATE INDEX jobs_by_model ON jobs (model_id, seq);
  CREATE UNIQUE INDEX jobs_by_idempotency_key ON jobs (owner, idempotency_key) WHERE idempotency_key IS NOT NULL;
  CREATE TABLE job_events (
    seq ${SEQ} PRIMARY KEY,
    id ${TEXT} NOT NULL UNIQUE,
    job_id ${TEXT} NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    type ${TEXT} NOT NULL,
    data ${TEXT} NOT NULL,
    created_at ${TEXT} NOT NULL
  );
  CREATE INDEX job_events_by_job ON job_events (job_id, seq);
  CREATE TABLE tokens (
    id ${TEXT} PRIMARY KEY,
    name ${TEXT} NOT NULL,
    hash ${TEXT} NOT NULL,
    scopes ${TEXT} NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
  );
  CREATE TABLE runs (
    model_id ${TEXT} PRIMARY KEY REFERENCES models (id) ON DELETE CASCADE,
    owner ${TEXT} NOT NULL,
    request_id ${TEXT} NOT NULL,
    name ${TEXT},
    spec ${TEXT} NOT NULL,
    closed BIGINT NOT NULL DEFAULT 0,
    UNIQUE (owner, request_id)
  );
  CREATE UNIQUE INDEX runs_by_name ON runs (owner, name) WHERE name IS NOT NULL;
`;

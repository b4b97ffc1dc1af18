-- Memory: what records were made of it, by which plan, and what we last said of it in a directory.

-- One row a kept fact.
CREATE TABLE memories (
    no        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id        BYTEA NOT NULL UNIQUE, -- digest of namespace and first record
    namespace TEXT COLLATE "C" NOT NULL,
    state     TEXT COLLATE "C" NOT NULL, -- active, superseded, retracted
    body      TEXT COLLATE "C" NOT NULL  -- the memory, JSON
);
CREATE INDEX memories_of_namespace ON memories (namespace, id);

-- One row a plan that was applied. Applied again after it was undone it is another row.
CREATE TABLE plans (
    no        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id        BYTEA NOT NULL, -- digest of what it changes
    namespace TEXT COLLATE "C" NOT NULL,
    at        BIGINT NOT NULL, -- when it was applied
    undone_at BIGINT,
    body      TEXT COLLATE "C" NOT NULL  -- the plan, JSON
);
CREATE UNIQUE INDEX plans_applied ON plans (id) WHERE undone_at IS NULL;
CREATE INDEX plans_of_namespace ON plans (namespace, no);

-- What became of a record: each has one disposition, or waits.
CREATE TABLE dispositions (
    record      BYTEA PRIMARY KEY,
    plan_no     BIGINT NOT NULL REFERENCES plans (no),
    disposition TEXT COLLATE "C" NOT NULL, -- add, merge, supersede, conflict, discard, duplicate
    rule        TEXT COLLATE "C" NOT NULL,
    memory      BYTEA           -- the memory that rests on it
);
CREATE INDEX dispositions_of_plan ON dispositions (plan_no);
CREATE INDEX dispositions_of_memory ON dispositions (memory);

-- What was done, for ever: ids and rules, no words.
CREATE TABLE ledger (
    no        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        BIGINT NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    deed      TEXT COLLATE "C" NOT NULL, -- apply, undo, confirm, forget
    plan      BYTEA,
    record    BYTEA,
    memory    BYTEA,
    rule      TEXT COLLATE "C"
);
CREATE INDEX ledger_of_memory ON ledger (memory, no);

-- Who consolidates a namespace: one at a time.
CREATE TABLE consolidating (
    namespace TEXT COLLATE "C" PRIMARY KEY,
    token     BIGINT NOT NULL, -- grows with each lease
    holder    TEXT COLLATE "C" NOT NULL,
    until     BIGINT NOT NULL,
    done_at   BIGINT           -- when it was last done
);

-- What we last rendered of a file of a directory: the base on which people's edits are told from ours.
CREATE TABLE memory_files (
    dir  TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    base TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (dir, path)
);

-- Memory: what records were made of it, by which plan, and what we last said of it in a directory.

-- One row a kept fact.
CREATE TABLE memories (
    no        INTEGER PRIMARY KEY,
    id        BLOB NOT NULL UNIQUE, -- digest of namespace and first record
    namespace TEXT NOT NULL,
    state     TEXT NOT NULL, -- active, superseded, retracted
    body      TEXT NOT NULL  -- the memory, JSON
) STRICT;
CREATE INDEX memories_of_namespace ON memories (namespace, id);

-- One row a plan that was applied. Applied again after it was undone it is another row.
CREATE TABLE plans (
    no        INTEGER PRIMARY KEY,
    id        BLOB NOT NULL, -- digest of what it changes
    namespace TEXT NOT NULL,
    at        INTEGER NOT NULL, -- when it was applied
    undone_at INTEGER,
    body      TEXT NOT NULL  -- the plan, JSON
) STRICT;
CREATE UNIQUE INDEX plans_applied ON plans (id) WHERE undone_at IS NULL;
CREATE INDEX plans_of_namespace ON plans (namespace, no);

-- What became of a record: each has one disposition, or waits.
CREATE TABLE dispositions (
    record      BLOB PRIMARY KEY,
    plan_no     INTEGER NOT NULL REFERENCES plans (no),
    disposition TEXT NOT NULL, -- add, merge, supersede, conflict, discard, duplicate
    rule        TEXT NOT NULL,
    memory      BLOB           -- the memory that rests on it
) STRICT;
CREATE INDEX dispositions_of_plan ON dispositions (plan_no);
CREATE INDEX dispositions_of_memory ON dispositions (memory);

-- What was done, for ever: ids and rules, no words.
CREATE TABLE ledger (
    no        INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    deed      TEXT NOT NULL, -- apply, undo, confirm, forget
    plan      BLOB,
    record    BLOB,
    memory    BLOB,
    rule      TEXT
) STRICT;
CREATE INDEX ledger_of_memory ON ledger (memory, no);

-- Who consolidates a namespace: one at a time.
CREATE TABLE consolidating (
    namespace TEXT PRIMARY KEY,
    token     INTEGER NOT NULL, -- grows with each lease
    holder    TEXT NOT NULL,
    until     INTEGER NOT NULL,
    done_at   INTEGER           -- when it was last done
) STRICT;

-- What we last rendered of a file of a directory: the base on which people's edits are told from ours.
CREATE TABLE memory_files (
    dir  TEXT NOT NULL,
    path TEXT NOT NULL,
    base TEXT NOT NULL,
    PRIMARY KEY (dir, path)
) STRICT;

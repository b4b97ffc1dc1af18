-- What annalist keeps in one database. Ids are digests of 16 bytes; times are milliseconds since
-- 1970 UTC; money is in millionths of a dollar; enums stand by name. Every text passed the privacy
-- gate. `no` columns are this file's own short keys and mean nothing outside it: rows of one
-- session or run stay together on disk, where digests would scatter them.

-- One row a conversation.
CREATE TABLE sessions (
    no         INTEGER PRIMARY KEY,
    id         BLOB    NOT NULL UNIQUE, -- digest of namespace, format, native id
    namespace  TEXT    NOT NULL,        -- whose memory
    format     TEXT    NOT NULL,        -- how the transcript is written
    native_id  TEXT    NOT NULL,        -- the transcript's own name for it
    path       TEXT    NOT NULL,        -- the file, as given on the command line
    title      TEXT,
    cwd        TEXT,                    -- the folder the agent worked in
    parent     TEXT,                    -- native id of what it was forked from or works for
    started_at INTEGER,
    entries    INTEGER,                 -- entries read in all; null until read to the end
    lines      INTEGER,                 -- lines of the file
    findings   TEXT,                    -- JSON list of findings: rules and places, no words
    masked     TEXT,                    -- JSON of rule name to matches, what the gate masked
    ended_at   INTEGER                  -- when we last read it to the end
) STRICT;

-- How many entries a session had each time it was read to its end. A session that grew is cut there
-- again, so that what was paid for is found again.
CREATE TABLE session_ends (
    session_no INTEGER NOT NULL REFERENCES sessions (no),
    entries    INTEGER NOT NULL,
    PRIMARY KEY (session_no, entries)
) WITHOUT ROWID, STRICT;

-- One row an entry, redacted.
CREATE TABLE entries (
    place     INTEGER PRIMARY KEY, -- sessions.no * 2^32 + ordinal: one key, no second index
    line      INTEGER NOT NULL,    -- line of the file, from 1
    speaker   TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    branch    TEXT    NOT NULL,
    at        INTEGER,             -- when it was said
    native_id TEXT,
    tool      TEXT,                -- the tool's name, for calls and results
    call_id   TEXT,                -- joins a call with its result
    outcome   TEXT,
    exit_code INTEGER,
    skip      TEXT,                -- why no model reads it
    text      TEXT    NOT NULL     -- last: a reader of the other columns need not touch it
) STRICT;

-- One row an extraction of one slice.
CREATE TABLE runs (
    no             INTEGER PRIMARY KEY,
    id             BLOB    NOT NULL UNIQUE, -- digest of slice, prompt, schema, model
    session_no     INTEGER NOT NULL REFERENCES sessions (no),
    slice          BLOB    NOT NULL,        -- the slice's id
    slice_index    INTEGER NOT NULL,        -- its place among the session's slices
    first_ordinal  INTEGER NOT NULL,        -- where it begins: entry and part of the entry
    first_part     INTEGER NOT NULL,
    last_ordinal   INTEGER NOT NULL,        -- where it ends, inclusive
    last_part      INTEGER NOT NULL,
    asking         BLOB    NOT NULL,        -- digest of model, prompt and schema together
    model          TEXT    NOT NULL,
    prompt_id      TEXT    NOT NULL,
    prompt_version INTEGER NOT NULL,
    schema_version INTEGER NOT NULL,
    rung           TEXT    NOT NULL,        -- how the answer was asked for
    generation     INTEGER NOT NULL,        -- 0, and one more each time it was asked afresh
    asks           INTEGER NOT NULL,        -- questions put to the model, answers of the journal too
    calls          INTEGER NOT NULL,        -- questions that went to the endpoint
    prompt_tokens     INTEGER NOT NULL,
    cached_tokens     INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost_micros    INTEGER NOT NULL,
    state          TEXT    NOT NULL,        -- done, failed
    error_kind     TEXT,                    -- for failed: what a program may branch on
    error_detail   TEXT,                    -- for failed: what a person reads; no words
    findings       TEXT    NOT NULL,        -- JSON list
    started_at     INTEGER NOT NULL,
    finished_at    INTEGER NOT NULL,
    current        INTEGER NOT NULL DEFAULT 1 -- 0: other runs cover its entries now
) STRICT;
CREATE INDEX runs_by_place ON runs (session_no, first_ordinal, first_part);
CREATE INDEX runs_by_time ON runs (finished_at);
CREATE INDEX runs_replaced ON runs (no) WHERE current = 0;

-- What became of an entry in a run; an entry cut in parts has a row for each run that read one.
-- The entry's own state is the highest of its rows in current runs. No foreign keys: a check a row
-- would cost as much as the row, and rows are only written beside their run.
CREATE TABLE coverage (
    session_no INTEGER NOT NULL,
    ordinal    INTEGER NOT NULL,
    run_no     INTEGER NOT NULL, -- 0: it was in no slice
    state      INTEGER NOT NULL, -- 0 pending, 1 skipped, 2 nothing, 3 extracted, 4 failed
    reason     TEXT,             -- for skipped and failed
    PRIMARY KEY (session_no, ordinal, run_no)
) WITHOUT ROWID, STRICT;

-- One row a claim with its proof.
CREATE TABLE records (
    no            INTEGER PRIMARY KEY,
    id            BLOB    NOT NULL UNIQUE, -- digest of run, kind, body
    run_no        INTEGER NOT NULL REFERENCES runs (no),
    kind          TEXT    NOT NULL,
    state         TEXT    NOT NULL, -- as proven; a record of a run that is not current is replaced
    score         REAL    NOT NULL, -- how much of it stands in the slice, 0 to 1
    first_ordinal INTEGER NOT NULL, -- the slice's entries
    last_ordinal  INTEGER NOT NULL,
    at            INTEGER,          -- when the first entry it rests on was said
    reason        TEXT,             -- why it is quarantined
    body          TEXT    NOT NULL, -- the claim, JSON
    evidence      TEXT    NOT NULL  -- JSON list; always read and written as a whole
) STRICT;
CREATE INDEX records_by_run ON records (run_no);

-- One row an answer of a model, stored before anything reads it.
CREATE TABLE journal (
    no      INTEGER PRIMARY KEY,
    digest  BLOB    NOT NULL UNIQUE, -- of the question
    run     BLOB    NOT NULL,        -- the run that asked first; it may not be staged yet
    model   TEXT    NOT NULL,
    rung    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    reply   TEXT    NOT NULL,        -- JSON
    request TEXT                     -- JSON, if it is kept
) STRICT;

-- What an endpoint was found to be able to do.
CREATE TABLE capabilities (
    base_url TEXT    NOT NULL,
    model    TEXT    NOT NULL,
    rung     TEXT    NOT NULL, -- the best that worked
    at       INTEGER NOT NULL,
    PRIMARY KEY (base_url, model)
) WITHOUT ROWID, STRICT;

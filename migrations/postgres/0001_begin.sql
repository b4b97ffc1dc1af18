-- What annalist keeps in one database. Ids are digests of 16 bytes; times are milliseconds since
-- 1970 UTC; money is in millionths of a dollar; enums stand by name. Every text passed the privacy
-- gate. `no` columns are this file's own short keys and mean nothing outside it: rows of one
-- session or run stay together on disk, where digests would scatter them.

-- One row a conversation.
CREATE TABLE sessions (
    no         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         BYTEA            NOT NULL UNIQUE, -- digest of namespace, format, native id
    namespace  TEXT COLLATE "C" NOT NULL,        -- whose memory
    format     TEXT COLLATE "C" NOT NULL,        -- how the transcript is written
    native_id  TEXT COLLATE "C" NOT NULL,        -- the transcript's own name for it
    path       TEXT COLLATE "C" NOT NULL,        -- the file, as given on the command line
    title      TEXT COLLATE "C",
    cwd        TEXT COLLATE "C",                 -- the folder the agent worked in
    parent     TEXT COLLATE "C",                 -- native id of what it was forked from or works for
    started_at BIGINT,
    entries    BIGINT,                           -- entries read in all; null until read to the end
    lines      BIGINT,                           -- lines of the file
    findings   TEXT COLLATE "C",                 -- JSON list of findings: rules and places, no words
    masked     TEXT COLLATE "C",                 -- JSON of rule name to matches, what the gate masked
    ended_at   BIGINT                            -- when we last read it to the end
);

-- How many entries a session had each time it was read to its end. A session that grew is cut there
-- again, so that what was paid for is found again.
CREATE TABLE session_ends (
    session_no BIGINT NOT NULL REFERENCES sessions (no),
    entries    BIGINT NOT NULL,
    PRIMARY KEY (session_no, entries)
);

-- One row an entry, redacted.
CREATE TABLE entries (
    place     BIGINT           PRIMARY KEY, -- sessions.no * 2^32 + ordinal: one key, no second index
    line      BIGINT           NOT NULL,    -- line of the file, from 1
    speaker   TEXT COLLATE "C" NOT NULL,
    kind      TEXT COLLATE "C" NOT NULL,
    branch    TEXT COLLATE "C" NOT NULL,
    at        BIGINT,                       -- when it was said
    native_id TEXT COLLATE "C",
    tool      TEXT COLLATE "C",             -- the tool's name, for calls and results
    call_id   TEXT COLLATE "C",             -- joins a call with its result
    outcome   TEXT COLLATE "C",
    exit_code BIGINT,
    skip      TEXT COLLATE "C",             -- why no model reads it
    text      TEXT COLLATE "C" NOT NULL     -- last: a reader of the other columns need not touch it
);

-- One row an extraction of one slice.
CREATE TABLE runs (
    no                BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id                BYTEA            NOT NULL UNIQUE,   -- digest of slice, prompt, schema, model
    session_no        BIGINT           NOT NULL REFERENCES sessions (no),
    slice             BYTEA            NOT NULL,          -- the slice's id
    slice_index       BIGINT           NOT NULL,          -- its place among the session's slices
    first_ordinal     BIGINT           NOT NULL,          -- where it begins: entry and part of the entry
    first_part        BIGINT           NOT NULL,
    last_ordinal      BIGINT           NOT NULL,          -- where it ends, inclusive
    last_part         BIGINT           NOT NULL,
    asking            BYTEA            NOT NULL,          -- digest of model, prompt and schema together
    model             TEXT COLLATE "C" NOT NULL,
    prompt_id         TEXT COLLATE "C" NOT NULL,
    prompt_version    BIGINT           NOT NULL,
    schema_version    BIGINT           NOT NULL,
    rung              TEXT COLLATE "C" NOT NULL,          -- how the answer was asked for
    generation        BIGINT           NOT NULL,          -- 0, and one more each time it was asked afresh
    asks              BIGINT           NOT NULL,          -- questions put to the model, answers of the journal too
    calls             BIGINT           NOT NULL,          -- questions that went to the endpoint
    prompt_tokens     BIGINT           NOT NULL,
    cached_tokens     BIGINT           NOT NULL,
    completion_tokens BIGINT           NOT NULL,
    cost_micros       BIGINT           NOT NULL,
    state             TEXT COLLATE "C" NOT NULL,          -- done, failed
    error_kind        TEXT COLLATE "C",                   -- for failed: what a program may branch on
    error_detail      TEXT COLLATE "C",                   -- for failed: what a person reads; no words
    findings          TEXT COLLATE "C" NOT NULL,          -- JSON list
    started_at        BIGINT           NOT NULL,
    finished_at       BIGINT           NOT NULL,
    current           BIGINT           NOT NULL DEFAULT 1 -- 0: other runs cover its entries now
);
CREATE INDEX runs_by_place ON runs (session_no, first_ordinal, first_part);
CREATE INDEX runs_by_time ON runs (finished_at);
CREATE INDEX runs_replaced ON runs (no) WHERE current = 0;

-- What became of an entry in a run; an entry cut in parts has a row for each run that read one.
-- The entry's own state is the highest of its rows in current runs. No foreign keys: a check a row
-- would cost as much as the row, and rows are only written beside their run.
CREATE TABLE coverage (
    session_no BIGINT           NOT NULL,
    ordinal    BIGINT           NOT NULL,
    run_no     BIGINT           NOT NULL, -- 0: it was in no slice
    state      BIGINT           NOT NULL, -- 0 pending, 1 skipped, 2 nothing, 3 extracted, 4 failed
    reason     TEXT COLLATE "C",          -- for skipped and failed
    PRIMARY KEY (session_no, ordinal, run_no)
);

-- One row a claim with its proof.
CREATE TABLE records (
    no            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            BYTEA            NOT NULL UNIQUE, -- digest of run, kind, body
    run_no        BIGINT           NOT NULL REFERENCES runs (no),
    kind          TEXT COLLATE "C" NOT NULL,
    state         TEXT COLLATE "C" NOT NULL,        -- as proven; a record of a run that is not current is replaced
    score         DOUBLE PRECISION NOT NULL,        -- how much of it stands in the slice, 0 to 1
    first_ordinal BIGINT           NOT NULL,        -- the slice's entries
    last_ordinal  BIGINT           NOT NULL,
    at            BIGINT,                           -- when the first entry it rests on was said
    reason        TEXT COLLATE "C",                 -- why it is quarantined
    body          TEXT COLLATE "C" NOT NULL,        -- the claim, JSON
    evidence      TEXT COLLATE "C" NOT NULL         -- JSON list; always read and written as a whole
);
CREATE INDEX records_by_run ON records (run_no);

-- One row an answer of a model, stored before anything reads it.
CREATE TABLE journal (
    no      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest  BYTEA            NOT NULL UNIQUE, -- of the question
    run     BYTEA            NOT NULL,        -- the run that asked first; it may not be staged yet
    model   TEXT COLLATE "C" NOT NULL,
    rung    TEXT COLLATE "C" NOT NULL,
    at      BIGINT           NOT NULL,
    reply   TEXT COLLATE "C" NOT NULL,        -- JSON
    request TEXT COLLATE "C"                  -- JSON, if it is kept
);

-- What an endpoint was found to be able to do.
CREATE TABLE capabilities (
    base_url TEXT COLLATE "C" NOT NULL,
    model    TEXT COLLATE "C" NOT NULL,
    rung     TEXT COLLATE "C" NOT NULL, -- the best that worked
    at       BIGINT           NOT NULL,
    PRIMARY KEY (base_url, model)
);

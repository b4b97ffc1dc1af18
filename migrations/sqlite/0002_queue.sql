-- The queue: slices that wait to be extracted, who works on them, and what they may cost.

-- How far a session's entries were handed to the queue: those before `taken` are in slices that are
-- cut for good, or in none; the others gather. `intakes` grows with every change of that, so that two
-- who hand over at once do not cut the same entries twice.
ALTER TABLE sessions ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN intakes INTEGER NOT NULL DEFAULT 0;

-- Documents that were handed over, by digest: one that comes again is known.
CREATE TABLE handed (
    session_no INTEGER NOT NULL REFERENCES sessions (no),
    digest     BLOB    NOT NULL,
    PRIMARY KEY (session_no, digest)
) WITHOUT ROWID, STRICT;

-- One row a namespace. `served` grows with each claim: the next claim goes to who was served longest ago.
CREATE TABLE lanes (
    no        INTEGER PRIMARY KEY,
    namespace TEXT    NOT NULL UNIQUE,
    served    INTEGER NOT NULL DEFAULT 0
) STRICT;

-- One row a job. The lower `no`, the older.
CREATE TABLE jobs (
    no            INTEGER PRIMARY KEY,
    id            BLOB    NOT NULL UNIQUE, -- digest of slice and way of asking
    session_no    INTEGER NOT NULL REFERENCES sessions (no),
    lane          INTEGER NOT NULL REFERENCES lanes (no),
    state         TEXT    NOT NULL, -- waiting, ready, leased, done, cut, dead, cancelled
    reason        TEXT,             -- why it waits, or the kind of what it died of
    detail        TEXT,             -- the same for a person; no words
    priority      INTEGER NOT NULL, -- higher goes first within its namespace
    attempts      INTEGER NOT NULL DEFAULT 0, -- claims that were charged
    generation    INTEGER NOT NULL DEFAULT 0, -- one more each time it was opened again
    token         INTEGER NOT NULL DEFAULT 0, -- grows with each claim
    holder        TEXT,             -- the worker that claimed it last
    since         INTEGER NOT NULL, -- when its state was written last; a lease, when it was extended
    until         INTEGER,          -- the end of the wait or of the lease
    enqueued_at   INTEGER NOT NULL,
    finished_at   INTEGER,          -- null while it is open
    asking        BLOB,             -- how the worker asked that ended it
    slice         BLOB    NOT NULL,
    slice_index   INTEGER NOT NULL,
    first_ordinal INTEGER NOT NULL,
    first_part    INTEGER NOT NULL,
    last_ordinal  INTEGER NOT NULL,
    last_part     INTEGER NOT NULL,
    tokens        INTEGER NOT NULL,
    cut           TEXT    NOT NULL  -- how the slice is cut out of its entries; empty when done
) STRICT;
-- Finished jobs stand in none of these, so that the queue is as fast with a million of them.
CREATE INDEX jobs_ready ON jobs (lane, priority DESC, no) WHERE state = 'ready';
CREATE INDEX jobs_until ON jobs (until) WHERE until IS NOT NULL;
CREATE INDEX jobs_open ON jobs (state, enqueued_at) WHERE finished_at IS NULL;
CREATE INDEX jobs_of_session ON jobs (session_no) WHERE finished_at IS NULL;
CREATE INDEX jobs_unwell ON jobs (state, no) WHERE state IN ('dead', 'cancelled');

-- Workers that are about, or that stopped because of something that a person must mend.
CREATE TABLE workers (
    id         TEXT    PRIMARY KEY, -- host, process and a digest of when it began
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    stopped    TEXT                 -- the line that mends it
) WITHOUT ROWID, STRICT;

-- What all who ask share: how much of a minute's allowance is used, and what is spent or reserved of
-- a cap. `amount` is microseconds since 1970 for rates, tokens and millionths of a dollar for caps.
CREATE TABLE allowances (
    scope  TEXT    NOT NULL, -- an endpoint, a session, a namespace's day, a day
    sort   TEXT    NOT NULL, -- requests, tokens, micros
    amount INTEGER NOT NULL,
    PRIMARY KEY (scope, sort)
) WITHOUT ROWID, STRICT;

-- The queue: slices that wait to be extracted, who works on them, and what they may cost.

-- How far a session's entries were handed to the queue: those before `taken` are in slices that are
-- cut for good, or in none; the others gather. `intakes` grows with every change of that, so that two
-- who hand over at once do not cut the same entries twice.
ALTER TABLE sessions ADD COLUMN taken BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN intakes BIGINT NOT NULL DEFAULT 0;

-- Documents that were handed over, by digest: one that comes again is known.
CREATE TABLE handed (
    session_no BIGINT NOT NULL REFERENCES sessions (no),
    digest     BYTEA  NOT NULL,
    PRIMARY KEY (session_no, digest)
);

-- One row a namespace. `served` grows with each claim: the next claim goes to who was served longest ago.
CREATE TABLE lanes (
    no        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace TEXT COLLATE "C" NOT NULL UNIQUE,
    served    BIGINT           NOT NULL DEFAULT 0
);

-- One row a job. The lower `no`, the older.
CREATE TABLE jobs (
    no            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            BYTEA            NOT NULL UNIQUE,    -- digest of slice and way of asking
    session_no    BIGINT           NOT NULL REFERENCES sessions (no),
    lane          BIGINT           NOT NULL REFERENCES lanes (no),
    state         TEXT COLLATE "C" NOT NULL,           -- waiting, ready, leased, done, cut, dead, cancelled
    reason        TEXT COLLATE "C",                    -- why it waits, or the kind of what it died of
    detail        TEXT COLLATE "C",                    -- the same for a person; no words
    priority      BIGINT           NOT NULL,           -- higher goes first within its namespace
    attempts      BIGINT           NOT NULL DEFAULT 0, -- claims that were charged
    generation    BIGINT           NOT NULL DEFAULT 0, -- one more each time it was opened again
    token         BIGINT           NOT NULL DEFAULT 0, -- grows with each claim
    holder        TEXT COLLATE "C",                    -- the worker that claimed it last
    since         BIGINT           NOT NULL,           -- when its state was written last; a lease, when it was extended
    until         BIGINT,                              -- the end of the wait or of the lease
    enqueued_at   BIGINT           NOT NULL,
    finished_at   BIGINT,                              -- null while it is open
    asking        BYTEA,                               -- how the worker asked that ended it
    slice         BYTEA            NOT NULL,
    slice_index   BIGINT           NOT NULL,
    first_ordinal BIGINT           NOT NULL,
    first_part    BIGINT           NOT NULL,
    last_ordinal  BIGINT           NOT NULL,
    last_part     BIGINT           NOT NULL,
    tokens        BIGINT           NOT NULL,
    cut           TEXT COLLATE "C" NOT NULL            -- how the slice is cut out of its entries; empty when done
);
-- Finished jobs stand in none of these, so that the queue is as fast with a million of them.
CREATE INDEX jobs_ready ON jobs (lane, priority DESC, no) WHERE state = 'ready';
CREATE INDEX jobs_until ON jobs (until) WHERE until IS NOT NULL;
CREATE INDEX jobs_open ON jobs (state, enqueued_at) WHERE finished_at IS NULL;
CREATE INDEX jobs_of_session ON jobs (session_no) WHERE finished_at IS NULL;
CREATE INDEX jobs_unwell ON jobs (state, no) WHERE state IN ('dead', 'cancelled');
-- What leaves an index is walked over until it is swept. By default that is done when a fifth of the table has
-- changed, so that claims would take the longer the more jobs were ever finished.
ALTER TABLE jobs SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Workers that are about, or that stopped because of something that a person must mend.
CREATE TABLE workers (
    id         TEXT COLLATE "C" PRIMARY KEY, -- host, process and a digest of when it began
    started_at BIGINT           NOT NULL,
    seen_at    BIGINT           NOT NULL,
    stopped    TEXT COLLATE "C"              -- the line that mends it
);

-- What all who ask share: how much of a minute's allowance is used, and what is spent or reserved of
-- a cap. `amount` is microseconds since 1970 for rates, tokens and millionths of a dollar for caps.
CREATE TABLE allowances (
    scope  TEXT COLLATE "C" NOT NULL, -- an endpoint, a session, a namespace's day, a day
    sort   TEXT COLLATE "C" NOT NULL, -- requests, tokens, micros
    amount BIGINT           NOT NULL,
    PRIMARY KEY (scope, sort)
);

-- What a model is asked about memory: the pairs that are left open, what its answers are about, and the bill of
-- calls that are no run's.

-- One row a pair that a plan left open: a record, and the memory that it may touch.
CREATE TABLE open_pairs (
    no         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    record     BYTEA  NOT NULL,
    memory     BYTEA  NOT NULL,
    namespace  TEXT COLLATE "C" NOT NULL,
    plan_no    BIGINT NOT NULL REFERENCES plans (no),
    rule       TEXT COLLATE "C" NOT NULL, -- the rule that could not decide
    asked      BYTEA,             -- digest of the question that a model had no use for last
    settled_no BIGINT,            -- the plan that settled it; null while it is open
    UNIQUE (record, memory)
);
CREATE INDEX open_pairs_open ON open_pairs (namespace, no) WHERE settled_no IS NULL;
CREATE INDEX open_pairs_of_plan ON open_pairs (plan_no);
CREATE INDEX open_pairs_of_memory ON open_pairs (memory);
CREATE INDEX open_pairs_settled ON open_pairs (settled_no) WHERE settled_no IS NOT NULL;

-- What plans that stand have left open so far.
INSERT INTO open_pairs (record, memory, namespace, plan_no, rule)
    SELECT decode(o ->> 'record', 'hex'), decode(o ->> 'memory', 'hex'), p.namespace, p.no, o ->> 'rule'
    FROM plans p, json_array_elements(p.body::json -> 'left_open') o
    WHERE p.undone_at IS NULL
    ON CONFLICT (record, memory) DO NOTHING;

-- Which records and memories an answer of the journal is about, where it is about no slice: it is erased with any.
CREATE TABLE answers_about (
    about  BYTEA NOT NULL, -- the id of a record or of a memory
    digest BYTEA NOT NULL, -- of the question
    PRIMARY KEY (about, digest)
);
CREATE INDEX answers_about_of ON answers_about (digest);

-- One row a call that is no run's. It stays when the answer is erased: it was paid for.
CREATE TABLE bills (
    digest    BYTEA  NOT NULL, -- of the question
    at        BIGINT NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    model     TEXT COLLATE "C" NOT NULL,
    prompt_tokens     BIGINT NOT NULL,
    cached_tokens     BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    cost_micros       BIGINT NOT NULL,
    PRIMARY KEY (digest, at)
);
CREATE INDEX bills_by_time ON bills (at);

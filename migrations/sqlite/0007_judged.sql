-- What a model is asked about memory: the pairs that are left open, what its answers are about, and the bill of
-- calls that are no run's.

-- One row a pair that a plan left open: a record, and the memory that it may touch.
CREATE TABLE open_pairs (
    no         INTEGER PRIMARY KEY,
    record     BLOB    NOT NULL,
    memory     BLOB    NOT NULL,
    namespace  TEXT    NOT NULL,
    plan_no    INTEGER NOT NULL REFERENCES plans (no),
    rule       TEXT    NOT NULL, -- the rule that could not decide
    asked      BLOB,             -- digest of the question that a model had no use for last
    settled_no INTEGER,          -- the plan that settled it; null while it is open
    UNIQUE (record, memory)
) STRICT;
CREATE INDEX open_pairs_open ON open_pairs (namespace, no) WHERE settled_no IS NULL;
CREATE INDEX open_pairs_of_plan ON open_pairs (plan_no);
CREATE INDEX open_pairs_of_memory ON open_pairs (memory);
CREATE INDEX open_pairs_settled ON open_pairs (settled_no) WHERE settled_no IS NOT NULL;

-- What plans that stand have left open so far.
INSERT INTO open_pairs (record, memory, namespace, plan_no, rule)
    SELECT unhex(json_extract(o.value, '$.record')), unhex(json_extract(o.value, '$.memory')),
        p.namespace, p.no, json_extract(o.value, '$.rule')
    FROM plans p, json_each(p.body, '$.left_open') o
    WHERE p.undone_at IS NULL
    ON CONFLICT (record, memory) DO NOTHING;

-- Which records and memories an answer of the journal is about, where it is about no slice: it is erased with any.
CREATE TABLE answers_about (
    about  BLOB NOT NULL, -- the id of a record or of a memory
    digest BLOB NOT NULL, -- of the question
    PRIMARY KEY (about, digest)
) WITHOUT ROWID, STRICT;
CREATE INDEX answers_about_of ON answers_about (digest);

-- One row a call that is no run's. It stays when the answer is erased: it was paid for.
CREATE TABLE bills (
    digest    BLOB    NOT NULL, -- of the question
    at        INTEGER NOT NULL,
    namespace TEXT    NOT NULL,
    model     TEXT    NOT NULL,
    prompt_tokens     INTEGER NOT NULL,
    cached_tokens     INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost_micros       INTEGER NOT NULL,
    PRIMARY KEY (digest, at)
) WITHOUT ROWID, STRICT;
CREATE INDEX bills_by_time ON bills (at);

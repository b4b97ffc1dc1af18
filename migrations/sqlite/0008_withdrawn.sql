-- A record whose conversation was read anew counts no more: memories rest on it no more, and what became of it is kept
-- in case the older reading comes back.
CREATE TABLE dispositions_now (
    record       BLOB    NOT NULL,
    plan_no      INTEGER NOT NULL REFERENCES plans (no),
    disposition  TEXT    NOT NULL, -- add, merge, supersede, conflict, discard, duplicate
    rule         TEXT    NOT NULL,
    memory       BLOB,             -- the memory that came of it
    withdrawn_no INTEGER,          -- the plan that withdrew it; null while it stands
    PRIMARY KEY (record, plan_no)
) STRICT;
INSERT INTO dispositions_now (record, plan_no, disposition, rule, memory)
    SELECT record, plan_no, disposition, rule, memory FROM dispositions;
DROP TABLE dispositions;
ALTER TABLE dispositions_now RENAME TO dispositions;
CREATE UNIQUE INDEX dispositions_standing ON dispositions (record) WHERE withdrawn_no IS NULL;
CREATE INDEX dispositions_of_plan ON dispositions (plan_no);
CREATE INDEX dispositions_of_memory ON dispositions (memory);
CREATE INDEX dispositions_withdrawn ON dispositions (withdrawn_no) WHERE withdrawn_no IS NOT NULL;

-- Records of a run that was asked afresh.
CREATE INDEX records_replaced ON records (no) WHERE state = 'replaced';

-- Whether a record was forgotten that a retrospective names.
CREATE INDEX ledger_forgotten ON ledger (record) WHERE deed = 'forget' AND record IS NOT NULL;

-- What a call was for that is no run's.
ALTER TABLE bills ADD COLUMN purpose TEXT NOT NULL DEFAULT 'consolidate'; -- consolidate, reflect, test

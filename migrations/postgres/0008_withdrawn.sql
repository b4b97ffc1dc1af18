-- A record whose conversation was read anew counts no more: memories rest on it no more, and what became of it is kept
-- in case the older reading comes back.
ALTER TABLE dispositions ADD COLUMN withdrawn_no BIGINT; -- the plan that withdrew it; null while it stands
ALTER TABLE dispositions DROP CONSTRAINT dispositions_pkey;
ALTER TABLE dispositions ADD PRIMARY KEY (record, plan_no);
CREATE UNIQUE INDEX dispositions_standing ON dispositions (record) WHERE withdrawn_no IS NULL;
CREATE INDEX dispositions_withdrawn ON dispositions (withdrawn_no) WHERE withdrawn_no IS NOT NULL;

-- Records of a run that was asked afresh.
CREATE INDEX records_replaced ON records (no) WHERE state = 'replaced';

-- Whether a record was forgotten that a retrospective names.
CREATE INDEX ledger_forgotten ON ledger (record) WHERE deed = 'forget' AND record IS NOT NULL;

-- What a call was for that is no run's.
ALTER TABLE bills ADD COLUMN purpose TEXT COLLATE "C" NOT NULL DEFAULT 'consolidate'; -- consolidate, reflect, test

-- The index of memories by which a plan finds those that new records may touch. A namespace without a row has none yet.
CREATE TABLE memory_indexes (
    namespace TEXT   PRIMARY KEY,
    memories  BIGINT NOT NULL, -- number of memories
    words     BIGINT NOT NULL  -- number of their words
);

-- One row a word and kind in a namespace.
CREATE TABLE memory_keys (
    key      BIGINT  PRIMARY KEY, -- hash of namespace, kind and word
    count    BIGINT  NOT NULL,    -- memories that say it
    postings BYTEA   NOT NULL     -- id, times and length of each; empty for a common word
);

-- Records that may wait to be consolidated are found without looking at the others. 1: a plan dealt with it, and that stands.
ALTER TABLE records ADD COLUMN settled BIGINT NOT NULL DEFAULT 0;
UPDATE records SET settled = 1 WHERE id IN (SELECT record FROM dispositions WHERE withdrawn_no IS NULL);
CREATE INDEX records_waiting ON records (no) WHERE settled = 0 AND state = 'staged';

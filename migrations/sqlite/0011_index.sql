-- The index of memories by which a plan finds those that new records may touch. A namespace without a row has none yet.
CREATE TABLE memory_indexes (
    namespace TEXT    PRIMARY KEY,
    memories  INTEGER NOT NULL, -- number of memories
    words     INTEGER NOT NULL  -- number of their words
) WITHOUT ROWID, STRICT;

-- One row a word and kind in a namespace.
CREATE TABLE memory_keys (
    key      INTEGER PRIMARY KEY, -- hash of namespace, kind and word
    count    INTEGER NOT NULL,    -- memories that say it
    postings BLOB    NOT NULL     -- id, times and length of each; empty for a common word
) STRICT;

-- Records that may wait to be consolidated are found without looking at the others. 1: a plan dealt with it, and that stands.
ALTER TABLE records ADD COLUMN settled INTEGER NOT NULL DEFAULT 0;
UPDATE records SET settled = 1 WHERE id IN (SELECT record FROM dispositions WHERE withdrawn_no IS NULL);
CREATE INDEX records_waiting ON records (no) WHERE settled = 0 AND state = 'staged';

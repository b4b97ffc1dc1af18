-- Words of records and memories, as digests. `rowid` is the `no` of a record, or that of a memory below zero.
CREATE VIRTUAL TABLE search USING fts5 (subject, reason, evidence, content = '', contentless_delete = 1, tokenize = 'ascii');

-- What an older version wrote without its words. The first search enters it.
CREATE TABLE unsearched (
    no INTEGER PRIMARY KEY -- as `rowid` above
) STRICT;
INSERT INTO unsearched (no) SELECT no FROM records UNION ALL SELECT -no FROM memories;

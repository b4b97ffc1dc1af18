-- Words of records and memories, as digests. `rowid` is the `no` of a record, or that of a memory below zero.
CREATE TABLE search (
    rowid BIGINT           PRIMARY KEY,
    keys  TEXT COLLATE "C" NOT NULL,
    words TSVECTOR         NOT NULL GENERATED ALWAYS AS (array_to_tsvector(string_to_array(keys, ' '))) STORED
);
CREATE INDEX search_words ON search USING gin (words);

-- What an older version wrote without its words. The first search enters it.
CREATE TABLE unsearched (
    no BIGINT PRIMARY KEY -- as `rowid` above
);
INSERT INTO unsearched (no) SELECT no FROM records UNION ALL SELECT -no FROM memories;

-- Copies of what was read, if the settings ask for them: entries behind the gate, compressed.
CREATE TABLE vault_chunks (
    no     INTEGER PRIMARY KEY,
    digest BLOB    NOT NULL UNIQUE, -- of the entries as JSON, one a line
    plain  INTEGER NOT NULL,        -- bytes before compression
    bytes  INTEGER NOT NULL,        -- bytes of the body
    body   BLOB    NOT NULL         -- last: a reader of the other columns need not touch it
) STRICT;

-- One row a part of a session's copy; copies that are alike share their chunks.
CREATE TABLE vault (
    session_no INTEGER NOT NULL REFERENCES sessions (no),
    part       INTEGER NOT NULL, -- from 0
    chunk_no   INTEGER NOT NULL REFERENCES vault_chunks (no),
    entries    INTEGER NOT NULL, -- entries in this part
    at         INTEGER NOT NULL, -- when it was read
    PRIMARY KEY (session_no, part)
) WITHOUT ROWID, STRICT;
CREATE INDEX vault_by_chunk ON vault (chunk_no);

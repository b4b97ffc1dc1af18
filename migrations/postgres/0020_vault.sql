-- Copies of what was read, if the settings ask for them: entries behind the gate, compressed.
CREATE TABLE vault_chunks (
    no     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest BYTEA  NOT NULL UNIQUE, -- of the entries as JSON, one a line
    plain  BIGINT NOT NULL,        -- bytes before compression
    bytes  BIGINT NOT NULL,        -- bytes of the body
    body   BYTEA  NOT NULL         -- last: a reader of the other columns need not touch it
);
ALTER TABLE vault_chunks ALTER COLUMN body SET STORAGE EXTERNAL; -- it is compressed already

-- One row a part of a session's copy; copies that are alike share their chunks.
CREATE TABLE vault (
    session_no BIGINT NOT NULL REFERENCES sessions (no),
    part       BIGINT NOT NULL, -- from 0
    chunk_no   BIGINT NOT NULL REFERENCES vault_chunks (no),
    entries    BIGINT NOT NULL, -- entries in this part
    at         BIGINT NOT NULL, -- when it was read
    PRIMARY KEY (session_no, part)
);
CREATE INDEX vault_by_chunk ON vault (chunk_no);

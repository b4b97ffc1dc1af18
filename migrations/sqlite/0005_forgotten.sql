-- Conversations that were forgotten: a transcript that still lies there must not bring them back. No words, no names.
CREATE TABLE forgotten (
    session BLOB PRIMARY KEY, -- the id it had
    at      INTEGER NOT NULL
) STRICT;

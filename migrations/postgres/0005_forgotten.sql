-- Conversations that were forgotten: a transcript that still lies there must not bring them back. No words, no names.
CREATE TABLE forgotten (
    session BYTEA PRIMARY KEY, -- the id it had
    at      BIGINT NOT NULL
);

-- Tokens of other machines and agents. The token itself is not kept.
CREATE TABLE tokens (
    name       TEXT PRIMARY KEY,
    digest     BLOB    NOT NULL UNIQUE, -- of the token
    namespace  TEXT    NOT NULL,
    rights     TEXT    NOT NULL, -- read, write; with a blank between two
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    used_at    INTEGER -- beginning of the last day on which it was used
) WITHOUT ROWID, STRICT;

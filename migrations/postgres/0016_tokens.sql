-- Tokens of other machines and agents. The token itself is not kept.
CREATE TABLE tokens (
    name       TEXT COLLATE "C" PRIMARY KEY,
    digest     BYTEA  NOT NULL UNIQUE, -- of the token
    namespace  TEXT   NOT NULL,
    rights     TEXT   NOT NULL, -- read, write; with a blank between two
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    used_at    BIGINT -- beginning of the last day on which it was used
);

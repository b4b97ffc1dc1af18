-- What slices are told of the entries before them, and what sessions were about.

-- What goes before the slice in its prompt; null for a first slice, and when the job is done.
ALTER TABLE jobs ADD COLUMN context TEXT;

-- What is remembered of a session, so that whoever goes on with it need not read it again.
CREATE TABLE remembered (
    session_no   INTEGER PRIMARY KEY REFERENCES sessions (no),
    settings     BLOB    NOT NULL, -- digest of what it was made under; under others it is made anew
    next         INTEGER NOT NULL, -- it was made of the entries before this one
    dialog       TEXT    NOT NULL, -- the last turns, JSON
    conversation TEXT    NOT NULL  -- the conversation's memory, JSON; empty where it is read anew each time
) STRICT;

-- One row a session: its memory card. `due` is 1 where the session has other entries than the card knows.
CREATE TABLE cards (
    session_no INTEGER PRIMARY KEY REFERENCES sessions (no),
    entries    INTEGER NOT NULL DEFAULT 0, -- the entries that it was made of
    due        INTEGER NOT NULL DEFAULT 0,
    card       TEXT                        -- JSON; null until it was made
) STRICT;
CREATE INDEX cards_due ON cards (session_no) WHERE due = 1;

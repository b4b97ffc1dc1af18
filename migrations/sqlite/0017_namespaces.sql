-- Namespaces that were given another name: who computes the old one is led to the new one.
CREATE TABLE namespace_moves (
    namespace TEXT PRIMARY KEY, -- the old name
    moved_to  TEXT NOT NULL
) WITHOUT ROWID, STRICT;

-- A session is found by its client's id, whatever its project was called when it was first read.
CREATE INDEX sessions_by_native_id ON sessions (native_id);
CREATE INDEX sessions_by_namespace ON sessions (namespace);

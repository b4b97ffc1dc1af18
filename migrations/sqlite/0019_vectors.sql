-- Vectors of what can be searched, where the settings name a model of embeddings.
CREATE TABLE vectors (
    no     INTEGER NOT NULL, -- as in `search`: a record's number, or a memory's below zero
    model  TEXT    NOT NULL,
    text   BLOB    NOT NULL, -- digest of what was embedded
    vector BLOB    NOT NULL, -- of length one, a byte a dimension
    PRIMARY KEY (model, no)
) WITHOUT ROWID, STRICT;
CREATE INDEX vectors_of_text ON vectors (text, model);
CREATE INDEX vectors_of_no ON vectors (no);

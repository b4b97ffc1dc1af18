-- Vectors of what can be searched, where the settings name a model of embeddings.
CREATE TABLE vectors (
    no     BIGINT           NOT NULL, -- as in `search`: a record's number, or a memory's below zero
    model  TEXT COLLATE "C" NOT NULL,
    text   BYTEA            NOT NULL, -- digest of what was embedded
    vector BYTEA            NOT NULL, -- of length one, a byte a dimension
    PRIMARY KEY (model, no)
);
CREATE INDEX vectors_of_text ON vectors (text, model);
CREATE INDEX vectors_of_no ON vectors (no);

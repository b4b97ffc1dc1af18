-- The section in which a memory is listed, null until the program has read it for that; the start of its validity; and the
-- memory that took its place.
ALTER TABLE memories ADD COLUMN section TEXT;
ALTER TABLE memories ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memories ADD COLUMN successor BLOB;
CREATE INDEX memories_by_successor ON memories (successor) WHERE successor IS NOT NULL;
CREATE INDEX memories_by_section ON memories (namespace, section, since, no);
CREATE INDEX memories_unlisted ON memories (no) WHERE section IS NULL;
CREATE INDEX memories_open ON memories (since) WHERE section IN ('request', 'question', 'failure');
-- What was said on a day.
CREATE INDEX records_by_time ON records (at);
-- What a model was asked and answered about a slice.
CREATE INDEX journal_of_run ON journal (run);

-- An undo is remembered: its records wait no more, what it withdrew stays, and no model is asked about its pairs again.
ALTER TABLE dispositions ADD COLUMN undone_no INTEGER; -- the undone plan that had dealt with the record
CREATE INDEX dispositions_undone ON dispositions (undone_no) WHERE undone_no IS NOT NULL;
ALTER TABLE open_pairs ADD COLUMN undone_no INTEGER; -- the undone plan that had settled the pair

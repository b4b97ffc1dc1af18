-- A call under a cap has a bill of its worst case until its answer is journaled: `in-flight`, then `unanswered`.
ALTER TABLE bills ADD COLUMN session BYTEA; -- of such a call

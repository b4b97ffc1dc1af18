-- Git branches that a session was on, with a blank between two: by them a commit finds its session.
ALTER TABLE sessions ADD COLUMN branches TEXT;

-- Words have other stems. The first search enters all texts anew.
DELETE FROM search;
INSERT INTO unsearched (no) SELECT no FROM records UNION ALL SELECT -no FROM memories ON CONFLICT DO NOTHING;

-- Words have other stems. The first search enters all texts anew.
INSERT INTO search (search) VALUES ('delete-all');
INSERT OR IGNORE INTO unsearched (no) SELECT no FROM records UNION ALL SELECT -no FROM memories;

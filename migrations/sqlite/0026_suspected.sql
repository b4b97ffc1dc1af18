-- Open pairs of which more is known than that they may be related, by the memory that may have changed.
CREATE INDEX open_pairs_suspected_of ON open_pairs (memory, no)
    WHERE settled_no IS NULL AND rule <> 'related';

-- Erasures whose text may still be in free pages and the log of the store's file, until the file was rewritten.
CREATE TABLE scrubs (
    no        INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL -- of the erased text; empty if it was the vault
) STRICT;

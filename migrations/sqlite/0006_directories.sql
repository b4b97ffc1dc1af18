-- Memory directories that were written, so that who makes memory of records can bring them in step.
CREATE TABLE memory_dirs (
    host      TEXT NOT NULL, -- the machine: a path means nothing on another
    dir       TEXT NOT NULL,
    namespace TEXT NOT NULL, -- whose memory it shows
    PRIMARY KEY (host, dir)
) STRICT;
CREATE INDEX memory_dirs_of_namespace ON memory_dirs (namespace);

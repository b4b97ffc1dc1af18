-- Memory directories that were written, so that who makes memory of records can bring them in step.
CREATE TABLE memory_dirs (
    host      TEXT COLLATE "C" NOT NULL, -- the machine: a path means nothing on another
    dir       TEXT COLLATE "C" NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL, -- whose memory it shows
    PRIMARY KEY (host, dir)
);
CREATE INDEX memory_dirs_of_namespace ON memory_dirs (namespace);

-- Records are counted by kind and state without being read.
DROP INDEX records_by_run;
CREATE INDEX records_by_run ON records (run_no, state, kind);

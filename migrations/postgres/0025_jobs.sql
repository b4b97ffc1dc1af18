-- All jobs of a session, with which a conversation that is handed over again is answered.
CREATE INDEX jobs_by_place ON jobs (session_no, first_ordinal);

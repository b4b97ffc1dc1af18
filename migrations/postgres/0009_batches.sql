-- The jobs of one replay: it works on these and on no others. A job may be in several batches.
CREATE TABLE batch_jobs (
    batch  TEXT COLLATE "C" NOT NULL, -- the worker that drains it
    job_no BIGINT           NOT NULL,
    PRIMARY KEY (batch, job_no)
);
CREATE INDEX batch_jobs_of_job ON batch_jobs (job_no);

-- The digest of the prompt's text: an edited prompt may have kept its version.
ALTER TABLE runs ADD COLUMN prompt_digest BYTEA;

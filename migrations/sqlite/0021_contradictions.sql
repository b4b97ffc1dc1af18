-- Pairs of memories that contradict one another, as the plans say that stand.
CREATE TABLE contradictions (
    no        INTEGER PRIMARY KEY,
    namespace TEXT    NOT NULL,
    one       BLOB    NOT NULL, -- the lesser id
    other     BLOB    NOT NULL,
    plan_no   INTEGER NOT NULL REFERENCES plans (no),
    ended_no  INTEGER           -- the plan that decided it; null while it stands
) STRICT;
WITH told AS MATERIALIZED (
    SELECT p.namespace, p.no,
        json_extract(o.value, '$.disposition.with') AS one,
        json_extract(o.value, '$.disposition.memory') AS other,
        json_extract(o.value, '$.disposition.name') = 'conflict'
            OR json_extract(o.value, '$.disposition.how') = 'beside' AS stands
    FROM plans p, json_each(p.body, '$.operations') o
    WHERE p.undone_at IS NULL
        AND json_extract(o.value, '$.disposition.name') IN ('conflict', 'settle')
), pairs AS MATERIALIZED (
    SELECT namespace, no, unhex(min(one, other)) AS one, unhex(max(one, other)) AS other, stands
    FROM told
)
INSERT INTO contradictions (namespace, one, other, plan_no, ended_no)
    SELECT t.namespace, t.one, t.other, t.no,
        (SELECT min(e.no) FROM pairs e
            WHERE NOT e.stands AND e.one = t.one AND e.other = t.other AND e.no > t.no)
    FROM pairs t WHERE t.stands ORDER BY t.no;
CREATE INDEX contradictions_standing ON contradictions (namespace) WHERE ended_no IS NULL;
CREATE INDEX contradictions_of_plan ON contradictions (plan_no);
CREATE INDEX contradictions_ended ON contradictions (ended_no) WHERE ended_no IS NOT NULL;
CREATE INDEX contradictions_of_pair ON contradictions (one, other);
CREATE INDEX contradictions_of_other ON contradictions (other);
-- Open pairs of which more is known than that they may be related.
CREATE INDEX open_pairs_suspected ON open_pairs (namespace, no)
    WHERE settled_no IS NULL AND rule <> 'related';

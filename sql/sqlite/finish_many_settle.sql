-- finish_many_settle: record what several sends came to, as finish_settle does for one.
--
-- Parameters
--   :results  text     JSON array of [seq, outcome, delay_ms], each seq once
--   :now_ms   integer  caller's clock, milliseconds
-- Result     many; seq, status
-- Called by  lease.jobs._settle.settle
-- Plan       PRIMARY KEY
--
-- Runs after finish_many_find in the same transaction, which has judged the tickets. The rows
-- come in no order.
UPDATE jobs
SET
    status = CASE
        WHEN result.outcome = 'ok' THEN 'done'
        WHEN result.outcome = 'permanent' THEN 'dead'
        WHEN jobs.attempts >= jobs.max_attempts THEN 'dead'
        WHEN :now_ms + result.delay_ms >= jobs.deadline THEN 'dead'
        ELSE 'pending'
    END,
    reason = CASE
        WHEN result.outcome = 'ok' THEN NULL
        WHEN result.outcome = 'permanent' THEN 'permanent'
        WHEN jobs.attempts >= jobs.max_attempts THEN 'exhausted'
        WHEN :now_ms + result.delay_ms >= jobs.deadline THEN 'deadline'
        ELSE 'retry'
    END,
    available_at = CASE
        WHEN
            result.outcome = 'retry'
            AND jobs.attempts < jobs.max_attempts
            AND :now_ms + result.delay_ms < jobs.deadline
            THEN :now_ms + result.delay_ms
        ELSE :now_ms
    END,
    owner = NULL,
    lease_until = NULL
FROM (
    SELECT
        json_extract(each_result.value, '$[0]') AS seq,
        json_extract(each_result.value, '$[1]') AS outcome,
        json_extract(each_result.value, '$[2]') AS delay_ms
    FROM json_each(:results) AS each_result
) AS result
WHERE jobs.seq = result.seq
RETURNING seq, status;

-- claim_recount: raise the bounds of leaves to what their jobs are.
--
-- Parameters
--   :leaves  text  JSON array of the numbers of the leaves
-- Result     none
-- Called by  lease.jobs._walk.tidy
-- Plan       scan (of the array)
--
-- So that the next claim does not look there again. What is written to the view tree_recount
-- is done by its trigger.
INSERT INTO tree_recount (leaf)
SELECT value AS leaf
FROM json_each(:leaves);

CREATE TABLE schema_version (
    version BIGINT NOT NULL PRIMARY KEY
);

-- One row once the run directories have all been taken in, none before that: a process that is
-- killed in between leaves an index that says that it is not filled.
CREATE TABLE filled (
    mark BIGINT NOT NULL PRIMARY KEY
);

-- Names the order, unit, direction and role of the numbers in run.scalars.
CREATE TABLE metric_set (
    metric_set_id TEXT NOT NULL PRIMARY KEY,
    definition TEXT NOT NULL
);

CREATE TABLE run (
    run_id TEXT NOT NULL PRIMARY KEY,
    origin TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    plan_index BIGINT NOT NULL,
    block BIGINT NOT NULL,
    block_order BIGINT NOT NULL,
    testcase TEXT NOT NULL,
    params TEXT NOT NULL,
    case_id TEXT NOT NULL,
    variant TEXT NOT NULL,
    testbox TEXT NOT NULL,
    iteration BIGINT NOT NULL,
    warm_up BIGINT NOT NULL,
    build_id TEXT,
    boot_id TEXT,
    session_id TEXT,
    kernel_release TEXT NOT NULL,
    start_unix_ns BIGINT NOT NULL,
    window_ns BIGINT NOT NULL,
    clock TEXT NOT NULL,
    instrument TEXT NOT NULL,
    outcome TEXT NOT NULL,
    outcome_json TEXT NOT NULL,
    metric_set_id TEXT NOT NULL REFERENCES metric_set (metric_set_id),
    scalars BLOB NOT NULL
);

CREATE INDEX run_by_plan ON run (plan_id, plan_index);
CREATE INDEX run_by_testcase ON run (testcase, start_unix_ns);
CREATE INDEX run_by_start ON run (start_unix_ns);

-- Readings that one number does not exhaust.
CREATE TABLE run_reading (
    run_id TEXT NOT NULL REFERENCES run (run_id),
    position BIGINT NOT NULL,
    metric TEXT NOT NULL,
    reading BLOB NOT NULL,
    PRIMARY KEY (run_id, position)
);

-- Headline figures once more, for plain SQL.
CREATE TABLE kpi_point (
    run_id TEXT NOT NULL REFERENCES run (run_id),
    metric TEXT NOT NULL,
    unit TEXT NOT NULL,
    value DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (run_id, metric)
);

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
    metric_set_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    definition TEXT COLLATE "C" NOT NULL
);

CREATE TABLE run (
    run_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    origin TEXT COLLATE "C" NOT NULL,
    plan_id TEXT COLLATE "C" NOT NULL,
    plan_index BIGINT NOT NULL,
    block BIGINT NOT NULL,
    block_order BIGINT NOT NULL,
    testcase TEXT COLLATE "C" NOT NULL,
    params TEXT COLLATE "C" NOT NULL,
    case_id TEXT COLLATE "C" NOT NULL,
    variant TEXT COLLATE "C" NOT NULL,
    testbox TEXT COLLATE "C" NOT NULL,
    iteration BIGINT NOT NULL,
    warm_up BIGINT NOT NULL,
    build_id TEXT COLLATE "C",
    boot_id TEXT COLLATE "C",
    session_id TEXT COLLATE "C",
    kernel_release TEXT COLLATE "C" NOT NULL,
    start_unix_ns BIGINT NOT NULL,
    window_ns BIGINT NOT NULL,
    clock TEXT COLLATE "C" NOT NULL,
    instrument TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    outcome_json TEXT COLLATE "C" NOT NULL,
    metric_set_id TEXT COLLATE "C" NOT NULL REFERENCES metric_set (metric_set_id),
    scalars BYTEA NOT NULL
);

CREATE INDEX run_by_plan ON run (plan_id, plan_index);
CREATE INDEX run_by_testcase ON run (testcase, start_unix_ns);
CREATE INDEX run_by_start ON run (start_unix_ns);

-- Readings that one number does not exhaust.
CREATE TABLE run_reading (
    run_id TEXT COLLATE "C" NOT NULL REFERENCES run (run_id),
    position BIGINT NOT NULL,
    metric TEXT COLLATE "C" NOT NULL,
    reading BYTEA NOT NULL,
    PRIMARY KEY (run_id, position)
);

-- Headline figures once more, for plain SQL.
CREATE TABLE kpi_point (
    run_id TEXT COLLATE "C" NOT NULL REFERENCES run (run_id),
    metric TEXT COLLATE "C" NOT NULL,
    unit TEXT COLLATE "C" NOT NULL,
    value DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (run_id, metric)
);

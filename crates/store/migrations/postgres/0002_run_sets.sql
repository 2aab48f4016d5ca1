-- Names the order and the units of the figures in run_set.figures.
CREATE TABLE figure_set (
    figure_set_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    definition TEXT COLLATE "C" NOT NULL
);

-- How much each metric varied in the runs of one variant, boot and plan: what later comparisons
-- borrow from.
CREATE TABLE run_set (
    plan_id TEXT COLLATE "C" NOT NULL,
    position BIGINT NOT NULL,
    testbox TEXT COLLATE "C" NOT NULL,
    case_id TEXT COLLATE "C" NOT NULL,
    variant TEXT COLLATE "C" NOT NULL,
    kernel_release TEXT COLLATE "C" NOT NULL,
    build_id TEXT COLLATE "C",
    boot_id TEXT COLLATE "C",
    clock TEXT COLLATE "C" NOT NULL,
    instrument TEXT COLLATE "C" NOT NULL,
    start_unix_ns BIGINT NOT NULL,
    figure_set_id TEXT COLLATE "C" NOT NULL REFERENCES figure_set (figure_set_id),
    figures BYTEA NOT NULL,
    PRIMARY KEY (plan_id, position)
);

CREATE INDEX run_set_by_case ON run_set (testbox, case_id, start_unix_ns);

-- An index of before has no run sets: it is filled again.
DELETE FROM filled;

//! The t e-process.

use crate::cases::check::{Case, Check};
use kdyno_stats::evalue::{stopping_time, t_e_process};

pub fn run(case: &Case, check: &mut Check<'_>) {
    let path = t_e_process(&case.floats("/x"), case.float("/g")).unwrap_or_default();
    for (i, step) in path.iter().enumerate() {
        check.number(&format!("/path/{i}/n"), Some(step.n as f64));
        check.number(&format!("/path/{i}/t"), step.t);
        check.number(&format!("/path/{i}/e"), Some(step.e()));
    }
    let stop = stopping_time(&path, case.float("/threshold"));
    check.number("/stop_n", stop.map(|n| n as f64));
}

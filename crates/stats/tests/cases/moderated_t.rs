//! The moderated t with a prior from history, on logarithms.

use super::check::{Case, Check};
use kdyno_stats::moderated::{Prior, moderated};
use kdyno_stats::ttest::logs;

pub fn run(case: &Case, check: &mut Check<'_>) {
    let prior = Prior {
        df: case.float("/d0"),
        variance: case.float("/s02"),
    };
    let rows = case.rows("/a").into_iter().zip(case.rows("/b"));
    for (i, (a, b)) in rows.enumerate() {
        let (a, b) = (logs(&a).expect("logs"), logs(&b).expect("logs"));
        let at = |name: &str| format!("/{i}/{name}");
        let result = moderated(&a, &b, prior, None);
        check.number(&at("s2_post"), result.as_ref().map(|m| m.variance));
        let difference = result.map(|m| m.difference);
        let difference = difference.as_ref();
        check.number(&at("log_ratio"), difference.map(|d| d.estimate));
        check.number(&at("t"), difference.and_then(|d| d.t()));
        check.number(&at("df"), difference.map(|d| d.df));
        check.number(&at("p"), difference.and_then(|d| d.p()));
        let ratios = difference.and_then(|d| d.ratio_interval(0.95));
        check.interval(&at("ratio_ci"), ratios);
    }
}

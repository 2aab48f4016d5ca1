//! Welch's t on values and on logarithms, and Fieller's set of the ratio of means.

use super::check::{Case, Check};
use kdyno_stats::fieller::mean_ratio;
use kdyno_stats::ttest::{logs, welch};

pub fn run(case: &Case, check: &mut Check<'_>) {
    let (a, b) = (case.floats("/a"), case.floats("/b"));
    let level = 1.0 - case.float("/alpha");
    let plain = welch(&a, &b);
    check.number("/t", plain.as_ref().and_then(|d| d.t()));
    check.number("/df", plain.as_ref().map(|d| d.df));
    check.number("/p", plain.as_ref().and_then(|d| d.p()));
    check.number("/diff", plain.as_ref().map(|d| d.estimate));
    check.interval("/ci", plain.as_ref().and_then(|d| d.interval(level)));
    let on_logs = logs(&a)
        .zip(logs(&b))
        .and_then(|(log_a, log_b)| welch(&log_a, &log_b));
    check.number("/log_t", on_logs.as_ref().and_then(|d| d.t()));
    check.number("/log_df", on_logs.as_ref().map(|d| d.df));
    check.number("/log_p", on_logs.as_ref().and_then(|d| d.p()));
    check.number("/gmean_ratio", on_logs.as_ref().and_then(|d| d.ratio()));
    let ratios = on_logs.as_ref().and_then(|d| d.ratio_interval(level));
    check.interval("/gmean_ratio_ci", ratios);
    let ratio = mean_ratio(&a, &b, level);
    check.number("/mean_ratio", ratio.map(|r| r.ratio));
    check.number("/fieller_df", ratio.map(|r| r.df));
    check.interval("/fieller_ci", ratio.and_then(|r| r.set.interval()));
}

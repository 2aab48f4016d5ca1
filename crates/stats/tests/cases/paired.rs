//! Pairs on logarithms: t, signed ranks, sign flips.

use super::check::{Case, Check};
use kdyno_stats::paired::{log_ratios, sign_flip, signed_rank, walsh_location};
use kdyno_stats::ttest::one_sample;

pub fn run(case: &Case, check: &mut Check<'_>) {
    let Some(logs) = log_ratios(&case.floats("/a"), &case.floats("/b")) else {
        return;
    };
    let t = one_sample(&logs);
    check.number("/t", t.as_ref().and_then(|d| d.t()));
    check.number("/df", t.as_ref().map(|d| d.df));
    check.number("/p", t.as_ref().and_then(|d| d.p()));
    check.number("/gmean_ratio", t.as_ref().and_then(|d| d.ratio()));
    let ratios = t.as_ref().and_then(|d| d.ratio_interval(0.95));
    check.interval("/gmean_ratio_ci", ratios);
    let ranks = signed_rank(&logs);
    check.number("/signed_rank_V", ranks.as_ref().map(|r| r.v));
    check.number("/signed_rank_p", ranks.as_ref().map(|r| r.p));
    let location = walsh_location(&logs, 0.95);
    check.number("/hl_log", location.as_ref().map(|l| l.estimate));
    check.interval("/hl_log_ci", location.as_ref().map(|l| l.interval));
    check.number("/signflip_p", sign_flip(&logs, 1).map(|s| s.p));
}

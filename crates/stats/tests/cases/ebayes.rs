//! The prior learnt across metrics, on logarithms.

use super::check::{Case, Check};
use kdyno_stats::ebayes::{fit, total_df};
use kdyno_stats::moderated::moderated;
use kdyno_stats::summary::Summary;
use kdyno_stats::ttest::{Difference, logs, pooled_sd};

pub fn run(case: &Case, check: &mut Check<'_>) {
    let on_logs = |pointer| -> Vec<Vec<f64>> {
        let rows = case.rows(pointer);
        rows.iter().map(|row| logs(row).expect("logs")).collect()
    };
    let (a, b) = (on_logs("/a"), on_logs("/b"));
    let variance = |(a, b): (&Vec<f64>, &Vec<f64>)| {
        let sd = pooled_sd(&Summary::of(a)?, &Summary::of(b)?)?;
        Some((sd * sd, (a.len() + b.len()) as f64 - 2.0))
    };
    let variances: Option<Vec<(f64, f64)>> = a.iter().zip(&b).map(variance).collect();
    let variances = variances.expect("variances");
    let prior = fit(&variances).expect("prior").prior;
    let finite = |v: f64| v.is_finite().then_some(v);
    check.number("/d0", finite(prior.df));
    check.number("/s02", Some(prior.variance));
    let family: f64 = variances.iter().map(|(_, df)| df).sum();
    for (i, ((a, b), (_, own))) in a.iter().zip(&b).zip(&variances).enumerate() {
        let result = moderated(a, b, prior, None).expect("moderated");
        check.number(&format!("/s2_post/{i}"), Some(result.variance));
        let capped = Difference {
            df: total_df(prior, *own, family),
            ..result.difference
        };
        check.number(&format!("/t/{i}"), capped.t());
        check.number(&format!("/p/{i}"), capped.p());
    }
}

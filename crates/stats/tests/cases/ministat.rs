//! Ministat's figures: summaries and the pooled t at several levels.

use super::check::{Case, Check};
use kdyno_stats::change::percent_change;
use kdyno_stats::summary::Summary;
use kdyno_stats::ttest::{pooled, pooled_sd};

pub fn run(case: &Case, check: &mut Check<'_>) {
    let (a, b) = (case.floats("/a"), case.floats("/b"));
    let summaries = [("a", Summary::of(&a)), ("b", Summary::of(&b))];
    for (side, summary) in &summaries {
        let figure = |f: fn(&Summary) -> f64| summary.as_ref().map(f);
        check.number(&format!("/{side}/n"), figure(|s| s.n as f64));
        check.number(&format!("/{side}/min"), figure(|s| s.min));
        check.number(&format!("/{side}/max"), figure(|s| s.max));
        check.number(&format!("/{side}/median"), figure(|s| s.median));
        check.number(
            &format!("/{side}/ministat_median"),
            figure(|s| s.upper_median),
        );
        check.number(&format!("/{side}/mean"), figure(|s| s.mean));
        let sd = summary.as_ref().and_then(|s| s.sample_sd);
        check.number(&format!("/{side}/stddev"), sd);
    }
    let [(_, Some(of_a)), (_, Some(of_b))] = summaries else {
        return;
    };
    check.number("/pooled_s", pooled_sd(&of_a, &of_b));
    let difference = pooled(&a, &b);
    check.number("/diff", difference.as_ref().map(|d| d.estimate));
    let relative = percent_change(of_a.mean, of_b.mean).map(|percent| percent / 100.0);
    check.number("/rel_diff", relative);
    let levels = case.expected.get("halfwidth").and_then(|v| v.as_object());
    for level in levels.into_iter().flat_map(|map| map.keys()) {
        let share = level.parse::<f64>().expect("a level in percent") / 100.0;
        let half = difference.as_ref().and_then(|d| d.half_width(share));
        check.number(&format!("/halfwidth/{level}"), half);
        let relative = half.map(|h| h / of_a.mean.abs());
        check.number(&format!("/rel_halfwidth/{level}"), relative);
        let beyond = difference.as_ref().zip(half);
        let significant = beyond.is_some_and(|(d, half)| d.estimate.abs() > half);
        check.flag(&format!("/significant/{level}"), significant);
    }
    check.skip("/ministat_text_95");
    check.skip("/ministat_text_80");
}

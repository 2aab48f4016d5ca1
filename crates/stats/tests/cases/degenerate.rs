//! Sides for which the usual figures do not exist; whatever figure does exist must be finite.

use super::check::{Case, Check};
use kdyno_stats::degenerate::Shape;
use kdyno_stats::rank::{NullCache, brunner_munzel, hodges_lehmann, mann_whitney};
use kdyno_stats::summary::Summary;
use kdyno_stats::ttest::{logs, pooled, welch};

pub fn run(case: &Case, check: &mut Check<'_>) {
    let cases = case.input.get("cases").and_then(|v| v.as_array());
    for i in 0..cases.map_or(0, Vec::len) {
        let side = |name: &str| {
            let pointer = format!("/cases/{i}/{name}");
            let given = case.input.pointer(&pointer).is_some();
            given.then(|| case.floats(&pointer))
        };
        let (Some(a), b) = (side("a"), side("b").unwrap_or_default()) else {
            panic!("{}: case {i} has no side a", case.id);
        };
        let expects = |name: &str| case.expected.pointer(&format!("/{i}/{name}")).is_some();
        let at = |name: &str| format!("/{i}/{name}");
        check.skip(&at("note"));
        let summary = Summary::of(&a);
        if expects("mean") {
            check.number(&at("mean"), summary.as_ref().map(|s| s.mean));
        }
        if expects("variance") {
            let variance = summary.and_then(|s| s.sample_sd).map(|sd| sd * sd);
            check.number(&at("variance"), variance);
        }
        if expects("verdict") {
            let shape = Shape::of(&a, &b);
            check.text(&at("verdict"), shape.map_or("not finite", name));
        }
        if expects("p") {
            check.number(&at("p"), welch(&a, &b).and_then(|d| d.p()));
        }
        let test = mann_whitney(&a, &b, &mut NullCache::default());
        if expects("mwu_p") {
            check.number(&at("mwu_p"), test.as_ref().and_then(|t| t.p_exact));
        }
        if expects("mwu_p_exact_absdev") {
            let p = test.as_ref().and_then(|t| t.p_exact_deviation);
            check.number(&at("mwu_p_exact_absdev"), p);
        }
        check.holds(&at("finite"), all_finite(&a, &b));
    }
}

fn name(shape: Shape) -> &'static str {
    match shape {
        Shape::NotEnoughData => "not_enough_data",
        Shape::Identical => "identical",
        Shape::ChangedExact => "changed_exact",
        Shape::ZeroBase => "zero_base",
        Shape::NotPositive => "not_positive",
        Shape::Regular => "regular",
    }
}

/// Whether every figure that exists is a number.
fn all_finite(a: &[f64], b: &[f64]) -> bool {
    let logs = logs(a).zip(logs(b));
    let differences = [
        welch(a, b),
        pooled(a, b),
        brunner_munzel(a, b),
        logs.and_then(|(a, b)| welch(&a, &b)),
    ];
    let mut figures = Vec::new();
    for d in differences.into_iter().flatten() {
        figures.extend([Some(d.estimate), Some(d.se), Some(d.df), d.t(), d.p()]);
        let ends = d.interval(0.95);
        figures.extend([ends.map(|e| e.0), ends.map(|e| e.1)]);
    }
    let mut cache = NullCache::default();
    figures.push(mann_whitney(a, b, &mut cache).map(|t| t.p()));
    let shift = hodges_lehmann(a, b, 0.95, &mut cache);
    figures.push(shift.map(|s| s.estimate));
    figures.into_iter().flatten().all(f64::is_finite)
}

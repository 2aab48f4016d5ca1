//! Factorial designs.

use crate::cases::check::{Case, Check};
use kdyno_stats::factorial::factorial;

pub fn run(case: &Case, check: &mut Check<'_>) {
    let names = case.input.pointer("/factors").and_then(|v| v.as_array());
    let names: Vec<&str> = names
        .into_iter()
        .flatten()
        .filter_map(|v| v.as_str())
        .collect();
    let found = factorial(&case.rows("/design"), &case.floats("/y"), &[], 0.05);
    let Some(found) = found else {
        check.holds("the design can be fitted", false);
        return;
    };
    check.number("/intercept", Some(found.intercept));
    check.number("/residual_df", Some(found.residual_df as f64));
    check.number("/residual_sd", found.residual_sd);
    for effect in &found.effects {
        let factors: Vec<&str> = effect
            .word
            .iter()
            .filter_map(|i| names.get(*i).copied())
            .collect();
        let at = format!("/effects/{}", factors.join("*"));
        check.number(&format!("{at}/effect"), Some(effect.effect));
        check.interval(&format!("{at}/ci95"), effect.interval);
        check.number(&format!("{at}/p"), effect.p);
    }
}

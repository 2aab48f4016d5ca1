//! Families of p-values.

use super::check::{Case, Check};
use kdyno_stats::adjust::{Method, adjust};

pub fn run(case: &Case, check: &mut Check<'_>) {
    let p = case.floats("/p");
    for (name, method) in [
        ("/bonferroni", Method::Bonferroni),
        ("/holm", Method::Holm),
        ("/bh", Method::BenjaminiHochberg),
        ("/by", Method::BenjaminiYekutieli),
    ] {
        check.numbers(name, &adjust(&p, method).unwrap_or_default());
    }
    let found = adjust(&p, Method::BenjaminiHochberg).unwrap_or_default();
    for (i, q) in found.iter().enumerate() {
        check.flag(&format!("/bh_reject_q05/{i}"), *q <= 0.05);
    }
}

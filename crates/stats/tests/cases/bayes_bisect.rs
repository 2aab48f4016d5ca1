//! Posterior and next query of a noisy bisection.

use crate::cases::check::{Case, Check};
use kdyno_stats::bisect::{
    Levels, Observation, Prior, Scatter, best_query, expected_entropies, median_query, posterior,
    posterior_unknown_levels,
};

pub fn run(case: &Case, check: &mut Check<'_>) {
    let observations: Vec<Observation> = case
        .rows("/obs")
        .iter()
        .map(|pair| Observation {
            commit: pair[0] as usize,
            value: pair[1],
        })
        .collect();
    let prior = Prior {
        culprits: case.floats("/prior"),
        none: 0.0,
    };
    let levels = Levels {
        good: case.float("/mu0"),
        bad: case.float("/mu1"),
        sd: case.float("/sigma"),
    };
    check.holds(
        "one prior weight per commit",
        prior.culprits.len() == case.float("/K") as usize,
    );
    let skipped = case.floats("/skip");
    let runnable = |commit: usize| !skipped.contains(&(commit as f64));
    let at = |scatter| posterior(&prior, &observations, levels, scatter);
    let robust = at(Scatter::Robust).map_or(Vec::new(), |p| p.culprits);
    check.numbers("/posterior_t4", &robust);
    let unknown = posterior_unknown_levels(&prior, &observations);
    check.numbers(
        "/posterior_unknown_params",
        &unknown.map_or(Vec::new(), |p| p.culprits),
    );
    let Some(normal) = at(Scatter::Normal) else {
        check.holds("there is a posterior", false);
        return;
    };
    check.numbers("/posterior_gauss", &normal.culprits);
    check.number("/entropy_bits", Some(normal.entropy()));
    for (commit, entropy) in expected_entropies(&normal, levels).iter().enumerate() {
        if runnable(commit) {
            check.number(
                &format!("/expected_entropy_after_run_at/{commit}"),
                Some(*entropy),
            );
        }
    }
    let best = best_query(&normal, levels, |c| runnable(c).then_some(1.0));
    check.number("/best_query_min_entropy", best.map(|c| c as f64));
    let median = median_query(&normal, runnable);
    check.number("/best_query_median", median.map(|c| c as f64));
}

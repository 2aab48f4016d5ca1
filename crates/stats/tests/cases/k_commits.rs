//! Several variants against a base.

use crate::cases::check::{Case, Check};
use kdyno_stats::variants::{anova, dunnett, kruskal_wallis, welch_anova};

pub fn run(case: &Case, check: &mut Check<'_>) {
    let groups = case.rows("/groups");
    // The absolute tolerance of the case is for the reference's random quadrature of Dunnett's
    // p; everything else is held to the relative one.
    let exact = |check: &mut Check<'_>, at: &str, got| check.number_within(at, got, 1e-6, 1e-9);
    let gate = anova(&groups);
    exact(check, "/anova_F", gate.map(|g| g.statistic));
    exact(check, "/anova_p", gate.map(|g| g.p));
    let welch = welch_anova(&groups);
    exact(check, "/welch_anova_F", welch.map(|g| g.statistic));
    exact(check, "/welch_df/0", welch.map(|g| g.df_between));
    exact(check, "/welch_df/1", welch.and_then(|g| g.df_error));
    exact(check, "/welch_p", welch.map(|g| g.p));
    let ranks = kruskal_wallis(&groups);
    exact(check, "/kruskal_H", ranks.map(|g| g.statistic));
    exact(check, "/kruskal_p", ranks.map(|g| g.p));
    let comparisons = dunnett(&groups).map_or(Vec::new(), |d| d.comparisons);
    for (i, row) in comparisons.iter().enumerate() {
        exact(check, &format!("/dunnett_t/{i}"), Some(row.t));
        check.number(&format!("/dunnett_p/{i}"), Some(row.p));
    }
}

//! Histograms of octaves.

use crate::cases::check::{Case, Check};
use kdyno_stats::log2_histogram::{chi_square, distance, quantile_bucket, quantile_linear};

pub fn run(case: &Case, check: &mut Check<'_>) {
    let (a, b) = (counts(case, "/counts_a"), counts(case, "/counts_b"));
    let distance = distance(&a, &b);
    check.number("/ks_D_buckets", distance.map(|d| d.ks));
    check.number("/emd_octaves", distance.map(|d| d.emd_octaves));
    check.number(
        "/emd_octaves_signed",
        distance.map(|d| d.emd_octaves_signed),
    );
    let chi = chi_square(&a, &b);
    check.number("/chi2", chi.map(|c| c.statistic));
    check.number("/chi2_df", chi.map(|c| c.df as f64));
    check.number("/chi2_p", chi.map(|c| c.p));
    for p in ["0.5", "0.9", "0.99"] {
        let share = p.parse().expect("a number");
        for (side, counts) in [&a, &b].into_iter().enumerate() {
            let bucket = quantile_bucket(counts, share).map(|bucket| bucket as f64);
            check.number(&format!("/quantile_bucket/{p}/{side}"), bucket);
            let linear = quantile_linear(counts, share);
            check.number(&format!("/quantile_linear/{p}/{side}"), linear);
        }
    }
}

fn counts(case: &Case, pointer: &str) -> Vec<u64> {
    let floats = case.floats(pointer);
    floats.into_iter().map(|count| count as u64).collect()
}

//! Pure statistics: summaries, quantiles, percent change

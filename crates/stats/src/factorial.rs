//! Which of several two-level factors matter: effects of full and fractional factorial designs,
//! in blocks, with replicates or without.
//!
//! Main effects and two-factor interactions are fitted by least squares; columns that repeat
//! others are dropped and named. Interactions of three and more factors are taken for noise.
//! Adjustment over the effects is the caller's, with the p-values given here.

use crate::dist::StudentT;
use crate::least_squares::{Fit, fit};
use crate::quantile;
use crate::summary::{Summary, count};

/// Factors up to which aliases are listed; a design of more has too many words to print.
const MOST_FACTORS: usize = 10;

/// A main effect or interaction: the indices of its factors, ascending.
pub type Word = Vec<usize>;

/// The effect of a factor or interaction, high level minus low level.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Its factors: one for a main effect, two for an interaction.
    pub word: Word,
    /// Twice the coefficient, in the unit of the response.
    pub effect: f64,
    /// Standard error; `None` without residual degrees of freedom.
    pub error: Option<f64>,
    /// Interval at the level asked for: from the residuals, or else from Lenth's pseudo error.
    pub interval: Option<(f64, f64)>,
    /// Two-sided p, from the same error as the interval.
    pub p: Option<f64>,
    /// What cannot be told from this effect in this design, with the sign in which it enters.
    pub aliases: Vec<Alias>,
}

/// An effect that shares its column with another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// Factors of the interaction (or single factor).
    pub word: Word,
    /// Whether its column is the negative of the other.
    pub negative: bool,
}

/// Lenth's error of an unreplicated design.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lenth {
    /// Pseudo standard error, in the unit of the effects.
    pub pse: f64,
    /// Its degrees of freedom, a third of the effects.
    pub df: f64,
}

/// Result of a factorial experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Factorial {
    /// Mean response, at the mean of the blocks.
    pub intercept: f64,
    /// Main effects, then two-factor interactions, in the order of the factors.
    pub effects: Vec<Effect>,
    /// Main effects and two-factor interactions that could not be fitted, since they repeat an
    /// earlier column, the mean or a block.
    pub dropped: Vec<Word>,
    /// Residual degrees of freedom.
    pub residual_df: usize,
    /// Residual deviation; `None` without degrees of freedom.
    pub residual_sd: Option<f64>,
    /// Pseudo error, present where it stands in for the residual one.
    pub lenth: Option<Lenth>,
}

/// Effects of `design` (one row of levels -1 or 1 per run, one column per factor) on `response`
/// (one value per run), with intervals at `1 - alpha`; `blocks` names the block of each run, or
/// is empty.
///
/// Least squares on the columns of levels and their products (Box, Hunter, Hunter 2005, chapters
/// 5, 6 and 12); without residual degrees of freedom [`lenth`]. `None` for no run, lengths that
/// differ, levels other than -1 and 1, more than ten factors, or values that are not finite.
#[must_use]
pub fn factorial(
    design: &[Vec<f64>],
    response: &[f64],
    blocks: &[usize],
    alpha: f64,
) -> Option<Factorial> {
    let factors = design.first()?.len();
    let blocked = blocks.is_empty() || blocks.len() == response.len();
    let levels = |row: &Vec<f64>| row.len() == factors && row.iter().all(|l| l.abs() == 1.0);
    if design.len() != response.len() || !blocked || factors > MOST_FACTORS {
        return None;
    }
    if !design.iter().all(levels) {
        return None;
    }
    let (scaled, scale) = scale_of(response)?;
    let mut columns = vec![vec![1.0; response.len()]];
    columns.extend(block_columns(blocks));
    let first_effect = columns.len();
    let words: Vec<Word> = all_words(factors)
        .into_iter()
        .filter(|w| w.len() <= 2)
        .collect();
    columns.extend(words.iter().map(|word| column(design, word)));
    let fit = fit(&columns, &scaled)?;
    let mut result = Factorial {
        intercept: fit.coefficient(0)? * scale,
        effects: Vec::new(),
        dropped: Vec::new(),
        residual_df: fit.residual_df,
        residual_sd: fit.residual_variance().map(|v| v.sqrt() * scale),
        lenth: None,
    };
    for (i, word) in words.into_iter().enumerate() {
        match effect(&fit, first_effect + i, word.clone(), scale, alpha) {
            Some(effect) => result.effects.push(effect),
            None => result.dropped.push(word),
        }
    }
    if result.residual_df == 0 {
        apply_lenth(&mut result, alpha);
    }
    for effect in &mut result.effects {
        effect.aliases = aliases(design, &effect.word);
    }
    let finite =
        result.intercept.is_finite() && result.effects.iter().all(|e| e.effect.is_finite());
    finite.then_some(result)
}

/// Lenth's pseudo standard error of effects most of which are noise: `1.5 median |e|` over those
/// below `2.5 (1.5 median |e|)`, with a third as many degrees of freedom (Lenth 1989); `None`
/// for fewer than three effects, one that is not finite, or an error of 0.
#[must_use]
pub fn lenth(effects: &[f64]) -> Option<Lenth> {
    let sizes: Vec<f64> = effects.iter().map(|e| e.abs()).collect();
    let first = 1.5 * quantile::quantile(&sizes, 0.5)?;
    let small: Vec<f64> = sizes.into_iter().filter(|e| *e < 2.5 * first).collect();
    let pse = 1.5 * quantile::quantile(&small, 0.5)?;
    (effects.len() >= 3 && pse > 0.0 && pse.is_finite()).then_some(Lenth {
        pse,
        df: count(effects.len()) / 3.0,
    })
}

/// Everything the design cannot tell from `word`: the interactions and factors whose column of
/// levels is the same or its negative, in order of length; an empty word stands for the mean.
/// Empty for a design of more than ten factors.
#[must_use]
pub fn aliases(design: &[Vec<f64>], word: &[usize]) -> Vec<Alias> {
    let factors = design.first().map_or(0, Vec::len);
    if factors > MOST_FACTORS {
        return Vec::new();
    }
    let own = column(design, word);
    let mut found = Vec::new();
    for other in all_words(factors).into_iter().filter(|w| w != word) {
        let product = column(design, &other);
        let same = |sign: f64| own.iter().zip(&product).all(|(a, b)| *a == sign * b);
        if same(1.0) || same(-1.0) {
            let negative = !same(1.0);
            found.push(Alias {
                word: other,
                negative,
            });
        }
    }
    found
}

/// One effect with its error from the residuals; `None` when its column was dropped.
fn effect(fit: &Fit, index: usize, word: Word, scale: f64, alpha: f64) -> Option<Effect> {
    let effect = 2.0 * fit.coefficient(index)? * scale;
    let error = fit.error(index).map(|e| 2.0 * e * scale);
    let mut result = Effect {
        word,
        effect,
        error,
        interval: None,
        p: None,
        aliases: Vec::new(),
    };
    if let Some(error) = error {
        attach(&mut result, error, count(fit.residual_df), alpha);
    }
    Some(result)
}

fn attach(effect: &mut Effect, error: f64, df: f64, alpha: f64) {
    let Some(t) = StudentT::new(df).filter(|_| error > 0.0) else {
        return;
    };
    effect.p = Some(t.two_sided(effect.effect / error)).filter(|p| p.is_finite());
    let half = t.upper_quantile(alpha / 2.0).map(|q| q * error);
    effect.interval = half
        .filter(|h| h.is_finite())
        .map(|h| (effect.effect - h, effect.effect + h));
}

fn apply_lenth(result: &mut Factorial, alpha: f64) {
    let sizes: Vec<f64> = result.effects.iter().map(|e| e.effect).collect();
    result.lenth = lenth(&sizes);
    if let Some(lenth) = result.lenth {
        for effect in &mut result.effects {
            attach(effect, lenth.pse, lenth.df, alpha);
        }
    }
}

/// The response over its largest deviation from 0, so that squares cannot overflow.
fn scale_of(response: &[f64]) -> Option<(Vec<f64>, f64)> {
    let summary = Summary::of(response)?;
    let scale = summary.max.abs().max(summary.min.abs());
    let scale = if scale > 0.0 { scale } else { 1.0 };
    let scaled: Vec<f64> = response.iter().map(|v| v / scale).collect();
    scaled
        .iter()
        .all(|v| v.is_finite())
        .then_some((scaled, scale))
}

/// Deviation columns of all blocks but the first, so that the intercept is the mean over blocks.
fn block_columns(blocks: &[usize]) -> Vec<Vec<f64>> {
    let mut names = blocks.to_vec();
    names.sort_unstable();
    names.dedup();
    let first = names.first().copied();
    let value = |own: usize, block: usize| {
        f64::from(u8::from(block == own)) - f64::from(u8::from(Some(block) == first))
    };
    let column = |own: &usize| blocks.iter().map(|block| value(*own, *block)).collect();
    names.iter().skip(1).map(column).collect()
}

fn column(design: &[Vec<f64>], word: &[usize]) -> Vec<f64> {
    let product = |row: &Vec<f64>| word.iter().filter_map(|i| row.get(*i)).product();
    design.iter().map(product).collect()
}

/// All products of `factors` factors by length, then by factors, the empty one left out.
fn all_words(factors: usize) -> Vec<Word> {
    let mut words: Vec<Word> = (1_usize..1 << factors)
        .map(|bits| (0..factors).filter(|i| bits >> i & 1 == 1).collect())
        .collect();
    words.sort_by(|a: &Word, b: &Word| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn full(factors: usize) -> Vec<Vec<f64>> {
        let level = |bits: usize, i: usize| if bits >> i & 1 == 1 { 1.0 } else { -1.0 };
        (0..1 << factors)
            .map(|bits| (0..factors).map(|i| level(bits, i)).collect())
            .collect()
    }

    fn response(design: &[Vec<f64>], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        design.iter().map(|row| f(row)).collect()
    }

    #[test]
    fn a_half_fraction_names_its_aliases() {
        let design: Vec<Vec<f64>> = full(3)
            .into_iter()
            .map(|row| vec![row[0], row[1], row[2], row.iter().product()])
            .collect();
        let y = response(&design, |x| 10.0 + x[0] + 0.5 * x[0] * x[1]);
        let found = factorial(&design, &y, &[], 0.05).expect("factorial");
        let words: Vec<&Word> = found.effects.iter().map(|e| &e.word).collect();
        assert_eq!(
            words,
            [
                &vec![0],
                &vec![1],
                &vec![2],
                &vec![3],
                &vec![0, 1],
                &vec![0, 2],
                &vec![0, 3]
            ]
        );
        assert_eq!(found.dropped, [vec![1, 2], vec![1, 3], vec![2, 3]]);
        let positive = |word: Word| Alias {
            word,
            negative: false,
        };
        assert_eq!(found.effects[4].aliases, [positive(vec![2, 3])]);
        assert_eq!(found.effects[0].aliases, [positive(vec![1, 2, 3])]);
        assert_eq!(aliases(&design, &[]), [positive(vec![0, 1, 2, 3])]);
        assert!((found.effects[4].effect - 1.0).abs() < 1e-12);
    }

    #[test]
    fn unreplicated_designs_use_lenth() {
        let design = full(2);
        let y = response(&design, |x| 5.0 * x[0] + 0.2 * x[1] + 0.1 * x[0] * x[1]);
        let found = factorial(&design, &y, &[], 0.05).expect("factorial");
        assert_eq!((found.residual_df, found.residual_sd), (0, None));
        assert!(found.lenth.is_some());
        assert!(
            found
                .effects
                .iter()
                .all(|e| e.p.is_some() && e.error.is_none())
        );
    }

    /// |e| = 1, 1, 1, 2, 9: median 1, s0 = 1.5; 9 goes; median of the rest 1.
    #[test]
    fn lenth_by_hand() {
        let found = lenth(&[1.0, -1.0, 1.0, 2.0, 9.0]).expect("lenth");
        assert_eq!((found.pse, found.df), (1.5, 5.0 / 3.0));
        assert_eq!(lenth(&[1.0, 2.0]), None);
        assert_eq!(lenth(&[0.0; 5]), None);
        assert_eq!(lenth(&[f64::NAN; 5]), None);
    }

    #[test]
    fn blocks_are_taken_out() {
        let design: Vec<Vec<f64>> = full(2).into_iter().chain(full(2)).collect();
        let blocks = [0, 0, 0, 0, 7, 7, 7, 7];
        let noise = [0.1, -0.1, 0.0, 0.05, -0.02, 0.03, 0.0, -0.06];
        let y: Vec<f64> = (0..8)
            .map(|i| 100.0 * f64::from(u8::from(i > 3)) + 2.0 * design[i][0] + noise[i])
            .collect();
        let found = factorial(&design, &y, &blocks, 0.05).expect("factorial");
        assert_eq!(found.residual_df, 8 - 1 - 1 - 3);
        assert!((found.intercept - 50.0).abs() < 0.1);
        assert!((found.effects[0].effect - 4.0).abs() < 0.2);
        assert!(found.residual_sd.is_some_and(|sd| sd < 0.2));
    }

    #[test]
    fn an_effect_that_is_a_block_is_dropped() {
        let design = full(2);
        let found = factorial(&design, &[1.0, 2.0, 3.0, 5.0], &[0, 1, 0, 1], 0.05).expect("fit");
        assert_eq!(found.dropped, [vec![0]]);
    }

    #[test]
    fn designs_that_are_none() {
        assert_eq!(factorial(&[], &[], &[], 0.05), None);
        assert_eq!(factorial(&[vec![0.5]], &[1.0], &[], 0.05), None);
        assert_eq!(factorial(&full(1), &[1.0], &[], 0.05), None);
        assert_eq!(factorial(&full(1), &[1.0, f64::NAN], &[], 0.05), None);
        assert_eq!(factorial(&full(1), &[1.0, 2.0], &[1], 0.05), None);
        let flat = factorial(&full(2), &[0.0; 4], &[], 0.05).expect("flat");
        assert!(
            flat.effects
                .iter()
                .all(|e| e.effect == 0.0 && e.p.is_none())
        );
        let large = factorial(&full(1), &[-1e300, 1e300], &[], 0.05).expect("large");
        assert!((large.effects[0].effect / 2e300 - 1.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn the_effect_is_high_minus_low(y in prop::collection::vec(-1e3..1e3_f64, 8)) {
            let design = full(3);
            let found = factorial(&design, &y, &[], 0.05).expect("factorial");
            for effect in &found.effects {
                let signs = column(&design, &effect.word);
                let expected = signs.iter().zip(&y).map(|(s, y)| s * y).sum::<f64>() / 4.0;
                prop_assert!((effect.effect - expected).abs() < 1e-9);
            }
        }

        #[test]
        fn anything_in_finite_out(y in prop::collection::vec(any::<f64>(), 4)) {
            if let Some(found) = factorial(&full(2), &y, &[], 0.05) {
                prop_assert!(found.effects.iter().all(|e| e.effect.is_finite()));
            }
        }
    }
}

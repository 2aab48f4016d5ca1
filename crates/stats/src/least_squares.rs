//! Ordinary least squares on a few columns, as factorial designs need it.
//!
//! Orthogonalises column by column (Gram-Schmidt, twice per column, which is as good as
//! Householder: Giraud, Langou, Rozloznik 2005) and drops what depends on the columns before it.
//! Not meant for regressions with many or badly scaled columns.

use crate::summary::count;

/// Share of a column that must be left after the earlier ones for it to count as independent.
const INDEPENDENT: f64 = 1e-9;

/// Coefficients of a least-squares fit.
pub(crate) struct Fit {
    /// Per column the coefficient and the diagonal of `(X'X)^-1`; `None` for a dropped column.
    terms: Vec<Option<(f64, f64)>>,
    /// Rows less independent columns.
    pub(crate) residual_df: usize,
    residual_squares: f64,
}

impl Fit {
    pub(crate) fn coefficient(&self, column: usize) -> Option<f64> {
        let term = self.terms.get(column).copied().flatten();
        term.map(|(coefficient, _)| coefficient)
    }

    /// Residual sum of squares over its degrees of freedom.
    pub(crate) fn residual_variance(&self) -> Option<f64> {
        (self.residual_df > 0).then(|| self.residual_squares / count(self.residual_df))
    }

    /// Standard error of a coefficient.
    pub(crate) fn error(&self, column: usize) -> Option<f64> {
        let (_, diagonal) = self.terms.get(column).copied().flatten()?;
        Some((self.residual_variance()? * diagonal).sqrt())
    }
}

/// Fits `response` to `columns`; `None` when the lengths differ or a value is not finite.
pub(crate) fn fit(columns: &[Vec<f64>], response: &[f64]) -> Option<Fit> {
    let shaped = columns.iter().all(|c| c.len() == response.len());
    if !shaped
        || !columns
            .iter()
            .flatten()
            .chain(response)
            .all(|v| v.is_finite())
    {
        return None;
    }
    // Orthonormal columns, each with the combination of original columns that it is.
    let mut basis: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    let mut kept = vec![false; columns.len()];
    for (index, column) in columns.iter().enumerate() {
        let mut rest = column.clone();
        let mut made_of = vec![0.0; columns.len()];
        if let Some(own) = made_of.get_mut(index) {
            *own = 1.0;
        }
        for (direction, combination) in basis.iter().chain(basis.iter()) {
            let share = dot(direction, &rest);
            subtract(&mut rest, direction, share);
            subtract(&mut made_of, combination, share);
        }
        let length = dot(&rest, &rest).sqrt();
        if length > INDEPENDENT * dot(column, column).sqrt() {
            let unit = |v: Vec<f64>| v.into_iter().map(|v| v / length).collect();
            basis.push((unit(rest), unit(made_of)));
            if let Some(slot) = kept.get_mut(index) {
                *slot = true;
            }
        }
    }
    let mut residuals = response.to_vec();
    let mut coefficients = vec![(0.0, 0.0); columns.len()];
    for (direction, combination) in &basis {
        let share = dot(direction, &residuals);
        subtract(&mut residuals, direction, share);
        for ((coefficient, diagonal), part) in coefficients.iter_mut().zip(combination) {
            *coefficient += share * part;
            *diagonal += part * part;
        }
    }
    let terms = coefficients.into_iter().zip(kept);
    Some(Fit {
        terms: terms.map(|(term, kept)| kept.then_some(term)).collect(),
        residual_df: response.len().saturating_sub(basis.len()),
        residual_squares: dot(&residuals, &residuals),
    })
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn subtract(from: &mut [f64], what: &[f64], times: f64) {
    for (slot, value) in from.iter_mut().zip(what) {
        *slot -= times * value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line() {
        let x = vec![0.0, 1.0, 2.0, 3.0];
        let line = fit(&[vec![1.0; 4], x], &[1.0, 3.0, 5.0, 7.1]).expect("fit");
        // Slope 2.03, intercept 0.98; residuals 0.02, -0.01, -0.04, 0.03.
        assert!((line.coefficient(1).expect("slope") - 2.03).abs() < 1e-12);
        assert!((line.coefficient(0).expect("intercept") - 0.98).abs() < 1e-12);
        assert!((line.residual_variance().expect("variance") - 0.0015).abs() < 1e-12);
        assert!((line.error(1).expect("error") - (0.0015_f64 / 5.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn repeated_columns_are_dropped() {
        let column = vec![1.0, -1.0, 1.0];
        let twice = fit(&[column.clone(), column], &[1.0, -1.0, 1.0]).expect("fit");
        assert_eq!(twice.coefficient(1), None);
        assert_eq!(twice.residual_df, 2);
        assert!(fit(&[vec![1.0]], &[1.0, 2.0]).is_none());
        assert!(fit(&[vec![f64::NAN]], &[1.0]).is_none());
        assert!(fit(&[vec![0.0]], &[1.0]).is_some_and(|f| f.coefficient(0).is_none()));
    }
}

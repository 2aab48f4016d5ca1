//! Between a run and its columns: metric sets, blobs of numbers, words of enumerations.

use crate::{Scalars, StoreError};
use kdyno_model::{Better, MetricName, Residual, Role, RunRow, Scalar, SetFigure, Unit, Value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// What a metric set says about one number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MetricDef {
    metric: MetricName,
    unit: Unit,
    better: Better,
    role: Role,
}

/// The order of the numbers of a run; runs of one program on one machine mostly share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MetricSet {
    /// Half of the SHA-256 of the definition: rebuilding gives the same.
    pub id: String,
    /// The definitions as JSON.
    pub definition: String,
    defs: Vec<MetricDef>,
}

impl MetricSet {
    /// The set of these numbers.
    pub(crate) fn of(scalars: &[Scalar]) -> Result<Self, serde_json::Error> {
        let defs: Vec<MetricDef> = scalars
            .iter()
            .map(|s| MetricDef {
                metric: s.metric.clone(),
                unit: s.unit.clone(),
                better: s.better,
                role: s.role,
            })
            .collect();
        let definition = serde_json::to_string(&defs)?;
        Ok(Self {
            id: id_of(&definition),
            definition,
            defs,
        })
    }

    /// Reads what is stored.
    pub(crate) fn read(id: String, definition: String) -> Result<Self, serde_json::Error> {
        let defs = serde_json::from_str(&definition)?;
        Ok(Self {
            id,
            definition,
            defs,
        })
    }

    /// Whether it is the set of these numbers; cheaper than making theirs.
    pub(crate) fn fits(&self, scalars: &[Scalar]) -> bool {
        self.defs.len() == scalars.len()
            && self.defs.iter().zip(scalars).all(|(def, s)| {
                def.metric == s.metric
                    && def.unit == s.unit
                    && def.better == s.better
                    && def.role == s.role
            })
    }

    /// The wanted numbers of a blob with their names; `None` when the blob has not exactly one
    /// finite number per name.
    pub(crate) fn unpack(&self, blob: &[u8], wanted: Scalars) -> Option<Vec<Scalar>> {
        let (numbers, rest) = blob.as_chunks::<8>();
        if !rest.is_empty() || numbers.len() != self.defs.len() {
            return None;
        }
        let included = |def: &&MetricDef| wanted.include(def.role);
        // Thousands of runs are held at once, so none may hold more than it needs.
        let mut scalars = Vec::with_capacity(self.defs.iter().filter(included).count());
        for (def, bytes) in self.defs.iter().zip(numbers) {
            let value = f64::from_le_bytes(*bytes);
            if !value.is_finite() {
                return None;
            }
            if included(&def) {
                scalars.push(Scalar {
                    metric: def.metric.clone(),
                    unit: def.unit.clone(),
                    better: def.better,
                    role: def.role,
                    value,
                });
            }
        }
        Some(scalars)
    }
}

/// Half of the SHA-256 of a definition, in hexadecimal.
fn id_of(definition: &str) -> String {
    let mut id = String::new();
    for byte in Sha256::digest(definition.as_bytes()).iter().take(16) {
        // Writing to a `String` cannot fail.
        let _ = write!(id, "{byte:02x}");
    }
    id
}

/// The order and the units of the figures of a run set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FigureSet {
    /// As [`MetricSet::id`].
    pub id: String,
    /// Pairs of metric and unit as JSON.
    pub definition: String,
    defs: Vec<(MetricName, Unit)>,
}

/// Numbers per figure: on logarithms or not, runs, mean, variance, residual variance and its
/// degrees of freedom. What is missing is NaN, here and nowhere else.
const PER_FIGURE: usize = 6;

impl FigureSet {
    /// The set of these figures.
    pub(crate) fn of(figures: &[SetFigure]) -> Result<Self, serde_json::Error> {
        let def = |figure: &SetFigure| (figure.metric.clone(), figure.unit.clone());
        let defs: Vec<(MetricName, Unit)> = figures.iter().map(def).collect();
        let definition = serde_json::to_string(&defs)?;
        Ok(Self {
            id: id_of(&definition),
            definition,
            defs,
        })
    }

    /// Reads what is stored.
    pub(crate) fn read(id: String, definition: String) -> Result<Self, serde_json::Error> {
        let defs = serde_json::from_str(&definition)?;
        Ok(Self {
            id,
            definition,
            defs,
        })
    }

    /// The figures of a blob with their names; `None` when the blob does not fit.
    pub(crate) fn unpack(&self, blob: &[u8]) -> Option<Vec<SetFigure>> {
        let (numbers, rest) = blob.as_chunks::<8>();
        if !rest.is_empty() || numbers.len() != PER_FIGURE * self.defs.len() {
            return None;
        }
        let numbers: Vec<f64> = numbers.iter().map(|b| f64::from_le_bytes(*b)).collect();
        let (figures, _) = numbers.as_chunks::<PER_FIGURE>();
        let given = |value: f64| value.is_finite().then_some(value);
        let figure = |((metric, unit), numbers): (&(MetricName, Unit), &[f64; PER_FIGURE])| {
            let [logs, runs, mean, variance, residual, df] = *numbers;
            Some(SetFigure {
                metric: metric.clone(),
                unit: unit.clone(),
                logs: logs != 0.0,
                runs: whole(runs)?,
                mean: given(mean)?,
                variance: given(variance),
                residual: given(residual)
                    .zip(given(df))
                    .map(|(variance, df)| Residual { variance, df }),
            })
        };
        self.defs.iter().zip(figures).map(figure).collect()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a whole number of that range"
)]
fn whole(value: f64) -> Option<u32> {
    let fits = value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value);
    fits.then_some(value as u32)
}

/// The figures of a run set as little-endian f64, in their order.
pub(crate) fn pack_figures(figures: &[SetFigure]) -> Vec<u8> {
    let numbers = |figure: &SetFigure| {
        [
            f64::from(u8::from(figure.logs)),
            f64::from(figure.runs),
            figure.mean,
            figure.variance.unwrap_or(f64::NAN),
            figure.residual.map_or(f64::NAN, |r| r.variance),
            figure.residual.map_or(f64::NAN, |r| r.df),
        ]
    };
    let bytes = figures.iter().flat_map(numbers);
    bytes.flat_map(f64::to_le_bytes).collect()
}

/// The numbers of a run as little-endian f64, in the order of its metric set.
pub(crate) fn pack(scalars: &[Scalar]) -> Vec<u8> {
    scalars.iter().flat_map(|s| s.value.to_le_bytes()).collect()
}

/// Checks that every number of a run may be stored.
pub(crate) fn check(row: &RunRow) -> Result<(), StoreError> {
    let invalid = |metric: &MetricName, reason| StoreError::InvalidRun {
        run: row.run_id.to_string(),
        metric: metric.to_string(),
        reason,
    };
    for scalar in &row.scalars {
        let checked = Value::Scalar(scalar.value).check();
        checked.map_err(|e| invalid(&scalar.metric, e.0))?;
    }
    for reading in &row.rich {
        let checked = reading.value.check();
        checked.map_err(|e| invalid(&reading.metric, e.0))?;
    }
    Ok(())
}

/// Checks that every text of a run, as the columns have it, can be stored by PostgreSQL. JSON needs
/// no look: it writes the character as an escape.
pub(crate) fn check_texts(row: &RunRow) -> Result<(), StoreError> {
    let boot = row.boot_id.as_ref().map(|boot| boot.as_str());
    let texts = [
        ("testcase", row.case.testcase.as_str()),
        ("params", row.case.params.as_str()),
        ("case_id", row.case.id.0.as_str()),
        ("variant", row.variant.0.as_str()),
        ("testbox", row.testbox.as_str()),
        ("build_id", row.build_id.as_deref().unwrap_or_default()),
        ("boot_id", boot.unwrap_or_default()),
        ("kernel_release", row.kernel_release.as_str()),
        ("instrument", row.instrument.as_str()),
    ];
    let units = row.scalars.iter().map(|s| ("unit", s.unit.0.as_str()));
    match texts
        .into_iter()
        .chain(units)
        .find(|(_, text)| text.contains('\0'))
    {
        None => Ok(()),
        Some((field, _)) => Err(StoreError::Nul {
            run: row.run_id.to_string(),
            field,
        }),
    }
}

/// The word of a fieldless enumeration, as every file has it.
pub(crate) fn word(value: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(value)?)
}

/// Reads such a word.
pub(crate) fn from_word<T: DeserializeOwned>(word: String) -> Result<T, serde_json::Error> {
    serde_json::from_value(serde_json::Value::String(word))
}

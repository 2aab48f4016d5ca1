//! Between a run and its columns: metric sets, blobs of numbers, words of enumerations.

use crate::{Scalars, StoreError};
use kdyno_model::{Better, MetricName, Role, RunRow, Scalar, Unit, Value};
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
        let mut id = String::new();
        for byte in Sha256::digest(definition.as_bytes()).iter().take(16) {
            // Writing to a `String` cannot fail.
            let _ = write!(id, "{byte:02x}");
        }
        Ok(Self {
            id,
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

/// The word of a fieldless enumeration, as every file has it.
pub(crate) fn word(value: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(value)?)
}

/// Reads such a word.
pub(crate) fn from_word<T: DeserializeOwned>(word: String) -> Result<T, serde_json::Error> {
    serde_json::from_value(serde_json::Value::String(word))
}

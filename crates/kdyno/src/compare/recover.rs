//! `--recover GOOD BAD FIXED`: how much of a regression a fix takes back.

use super::known_names;
use crate::context::UsageError;
use kdyno_model::VariantName;

/// The three columns, which must be there.
pub(super) fn columns(
    names: [&String; 3],
    known: &[(VariantName, String)],
) -> Result<Vec<VariantName>, UsageError> {
    let column = |name: &String| {
        let found = known.iter().find(|(known, _)| known.as_str() == name);
        found.map(|(name, _)| name.clone()).ok_or_else(|| {
            UsageError::new(
                format!("--recover: no variant is called `{name}`"),
                known_names(known.iter().map(|(name, _)| name)),
            )
        })
    };
    let twice = names
        .iter()
        .enumerate()
        .find(|(place, name)| names[..*place].contains(name));
    if let Some((_, name)) = twice {
        return Err(UsageError::new(
            format!("--recover: `{name}` is named twice"),
            "name three variants: good, bad and fixed",
        ));
    }
    names.into_iter().map(column).collect()
}

//! What a case needs of a machine beyond what its facts tell.

use crate::root::SysRoot;
use crate::scratch;
use crate::sys;

/// Why a need is not met; `None` when it is. `disk` is bytes where trials have their directories,
/// `root` asks for its privilege, `path` for something that must exist.
#[must_use]
pub fn unmet(root: &SysRoot, name: &str, value: &str) -> Option<String> {
    match name {
        "disk" => match value.parse() {
            Ok(bytes) => scratch::no_room(bytes).map(|error| error.to_string()),
            Err(_) => Some(format!("`{value}` is no number of bytes")),
        },
        "root" => (value != "0" && sys::effective_user() != 0).then(|| "it needs root".to_owned()),
        "path" => (!root.path(value).exists()).then(|| format!("it needs {value}")),
        _ => Some(format!("nothing is known of a need `{name}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_met_or_told() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("sys/kernel/mm/ksm")).unwrap();
        let root = SysRoot::at(dir.path());
        assert_eq!(unmet(&root, "path", "/sys/kernel/mm/ksm"), None);
        let told = unmet(&root, "path", "/sys/kernel/mm/lru_gen").unwrap();
        assert_eq!(told, "it needs /sys/kernel/mm/lru_gen");
        assert_eq!(unmet(&root, "disk", "1"), None);
        assert!(unmet(&root, "disk", "18446744073709551615").is_some());
        assert!(unmet(&root, "disk", "much").is_some());
        assert!(unmet(&root, "colour", "red").is_some());
        let is_root = sys::effective_user() == 0;
        assert_eq!(unmet(&root, "root", "1").is_none(), is_root);
    }
}

//! The reference to a case that trials and records carry.

use crate::CaseId;
use serde::{Deserialize, Serialize};

/// One point of a job's axes: the readable name for tables, the content hash as its true
/// identity (readable names collide).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CaseRef {
    /// What the job calls the test, the first part of the name in tables.
    pub testcase: String,
    /// Option values sorted by option name and joined with `-`; `defaults` when there are none.
    pub params: String,
    /// Content hash of the canonical case.
    pub id: CaseId,
}

impl CaseRef {
    /// `testcase/params`, the name that selections match; the testcase alone where nobody knows of
    /// params, as for values from a file.
    #[must_use]
    pub fn name(&self) -> String {
        if self.params.is_empty() {
            return self.testcase.clone();
        }
        format!("{}/{}", self.testcase, self.params)
    }

    /// `testcase/params/testbox`, the name at the end of a row of the case table.
    #[must_use]
    pub fn name_on(&self, testbox: &str) -> String {
        format!("{}/{}/{}", self.testcase, self.params, testbox)
    }
}

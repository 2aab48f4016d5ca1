//! Typed identifiers, so that a plan id never stands where a run id belongs.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new identifier (UUIDv7): later ones sort after earlier ones.
            #[must_use]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }

            /// A new identifier that sorts after `other` even where the clock was set back.
            #[must_use]
            pub fn new_after(other: Option<Self>) -> Self {
                let new = Self::new();
                match other {
                    Some(other) if other >= new => Self(later(new.0, other.0)),
                    _ => new,
                }
            }

            /// Reads the hyphenated or plain form; `None` when the text is no UUID.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                Uuid::try_parse(text).ok().map(Self)
            }

            /// The last eight hexadecimal digits: the random part, short enough for a table.
            #[must_use]
            pub fn short(&self) -> String {
                let text = self.0.simple().to_string();
                text[text.len() - 8..].to_owned()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

/// `new` with the time of `other` and a millisecond more: the first 48 bits of a UUIDv7 (RFC 9562,
/// section 5.7).
fn later(new: Uuid, other: Uuid) -> Uuid {
    let millis = (other.as_u128() >> 80).saturating_add(1).min((1 << 48) - 1);
    Uuid::from_u128((new.as_u128() & ((1 << 80) - 1)) | (millis << 80))
}

uuid_id!(
    /// One plan: the ordered list of trials that one `kdyno run` set out to do.
    PlanId
);
uuid_id!(
    /// One run directory: the one execution of one trial.
    RunId
);
uuid_id!(
    /// One `kdyno run` process; a resumed plan has several.
    SessionId
);

uuid_id!(
    /// One home: the directory that holds every plan, wherever it is moved.
    HomeId
);

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The text as it was given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

text_id!(
    /// The content hash of a case: SHA-256 of its canonical text, in hexadecimal.
    CaseId
);
text_id!(
    /// The name of a variant: the title of a column.
    VariantName
);
text_id!(
    /// The kernel's `/proc/sys/kernel/random/boot_id`: one boot of one machine.
    BootId
);

impl CaseId {
    /// The first twelve digits, for people.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_sort_by_creation_whatever_the_clock_says() {
        let far = PlanId(later(
            Uuid::now_v7(),
            Uuid::from_u128(0xfff0_0000_0000 << 80),
        ));
        let next = PlanId::new_after(Some(far));
        assert!(next > far, "{next} {far}");
        assert!(PlanId::new_after(Some(next)) > next);
        let last = PlanId(Uuid::max());
        assert_eq!(PlanId::new_after(Some(last)).to_string()[..8], *"ffffffff");
        let now = PlanId::new();
        assert!(PlanId::new_after(Some(now)) > now);
        assert_eq!(PlanId::parse(&next.to_string()), Some(next));
    }
}

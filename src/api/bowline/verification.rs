//! The findings of a verification of the audit trail: of entries on a server, of commits in a repository.

use std::fmt;

use serde::Serialize;

use super::audit::Subject;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Somebody changed an entry.
    Tampered,
    /// An entry is missing.
    Incomplete,
    /// A note for the user; it is no proof of a change.
    Warning,
    /// This version cannot read an entry, so it cannot verify the entry.
    NotKnown,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Tampered => "tampered",
            Severity::Incomplete => "incomplete",
            Severity::Warning => "warning",
            Severity::NotKnown => "not known",
        })
    }
}

/// One problem or note that the verification found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub severity: Severity,
    /// The subject of the chain; for a chain about releases, the component.
    pub chain: String,
    /// The object with the problem, such as `auditentry/{name}` or `deploy/{name}`.
    pub object: String,
    /// The problem, as text for the user.
    pub what: String,
}

/// One verified chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainSummary {
    /// The subject of the chain; for a chain about releases, the component.
    pub subject: Subject,
    /// The number of entries that exist.
    pub entries: usize,
    /// The number of entries that retention removed.
    pub removed: i64,
    /// The newest revision of the chain.
    pub newest: i64,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// Changed and missing entries.
    pub problems: Vec<Finding>,
    /// Findings that are no problems.
    pub warnings: Vec<Finding>,
    /// A summary of each verified chain.
    pub chains: Vec<ChainSummary>,
    /// The number of verified entries.
    pub entries: usize,
}

impl Verification {
    /// Returns whether the verification found no changed or missing entry.
    pub fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns whether the verification could not read some entry.
    pub fn is_partial(&self) -> bool {
        let is_unknown = |finding: &Finding| finding.severity == Severity::NotKnown;
        self.warnings.iter().any(is_unknown)
    }
}

//! The result of a verification of the audit trail. On a server the verified entries are objects; in a
//! repository they are commits.

use std::fmt;

use serde::Serialize;

use super::audit::Subject;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// The finding proves that somebody changed an audit entry.
    Tampered,
    /// An audit entry is missing.
    Incomplete,
    /// The finding is a hint for the user, and no proof of a changed entry.
    Warning,
    /// This version of bowline cannot read an audit entry, so it cannot verify the entry.
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

/// One problem or hint that the verification found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub severity: Severity,
    /// The subject of the chain with the problem. If the chain is about the releases of a component, the
    /// component.
    pub chain: String,
    /// The name of the object with the problem, such as `auditentry/{name}` or `deploy/{name}`.
    pub object: String,
    /// Describes the problem to the user.
    pub what: String,
}

/// A summary of one verified chain of audit entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainSummary {
    /// The subject of the chain. If the chain is about the releases of a component, the component.
    pub subject: Subject,
    /// The number of entries of the chain that still exist.
    pub entries: usize,
    /// The number of entries of the chain that retention removed.
    pub removed: i64,
    /// The revision of the newest entry in the chain.
    pub newest: i64,
}

/// The result of a verification of all chains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// The findings about changed and missing entries.
    pub problems: Vec<Finding>,
    /// The findings that prove no change of an entry.
    pub warnings: Vec<Finding>,
    /// A summary of each verified chain.
    pub chains: Vec<ChainSummary>,
    /// The number of verified entries in all chains.
    pub entries: usize,
}

impl Verification {
    /// Returns whether all entries exist and are unchanged, as far as they can be read.
    pub fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns whether at least one entry could not be read.
    pub fn is_partial(&self) -> bool {
        let is_unknown = |finding: &Finding| finding.severity == Severity::NotKnown;
        self.warnings.iter().any(is_unknown)
    }
}

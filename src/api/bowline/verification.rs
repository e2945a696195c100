//! The findings of a verification of the audit trail: of entries on a server, of commits in a repository.

use std::fmt;

use serde::Serialize;

use super::audit::Subject;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// An entry was changed.
    Tampered,
    /// An entry is missing.
    Incomplete,
    /// A note for the user; it proves nothing.
    Warning,
    /// An entry cannot be verified, because the verification cannot read it.
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

/// One finding of the verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How serious the finding is.
    pub severity: Severity,
    /// The subject or the component of the chain.
    pub chain: String,
    /// The entry or the subject, such as `auditentry/{name}` or `deploy/{name}`.
    pub object: String,
    /// The description of the problem.
    pub what: String,
}

/// The numbers of one chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainSummary {
    /// The subject or the component.
    pub subject: Subject,
    /// The number of existing entries.
    pub entries: usize,
    /// The number of entries that retention removed.
    pub removed: i64,
    /// The newest revision.
    pub newest: i64,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// Changed and missing entries.
    pub problems: Vec<Finding>,
    /// Other notes for the user.
    pub warnings: Vec<Finding>,
    /// The verified chains.
    pub chains: Vec<ChainSummary>,
    /// The number of verified entries.
    pub entries: usize,
}

impl Verification {
    /// Returns whether there is no problem.
    pub fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns whether an entry could not be verified.
    pub fn is_partial(&self) -> bool {
        let is_unknown = |finding: &Finding| finding.severity == Severity::NotKnown;
        self.warnings.iter().any(is_unknown)
    }
}

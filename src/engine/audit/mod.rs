//! Chains of audit entries: what comes next, and whether what is there was rewritten.

//! Rules that hold whoever writes: CRD rules and admission policies.

//! The `tower::Service` that answers requests.

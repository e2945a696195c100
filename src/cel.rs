//! The one place that evaluates foreign expressions, under bounds.

//! The world of the demo: the worked example of deploy/examples, and what runs where.

/// The files of the example, so that the program needs nothing beside itself.
#[rustfmt::skip]
pub(super) const FILES: &[(&str, &str)] = &[
    ("addons/autoscaler.yaml", include_str!("../../../deploy/examples/addons/autoscaler.yaml")),
    ("addons/network-policy.yaml", include_str!("../../../deploy/examples/addons/network-policy.yaml")),
    ("addons/persistent-volume-claim.yaml", include_str!("../../../deploy/examples/addons/persistent-volume-claim.yaml")),
    ("component-types/scheduled-task.yaml", include_str!("../../../deploy/examples/component-types/scheduled-task.yaml")),
    ("component-types/web-app.yaml", include_str!("../../../deploy/examples/component-types/web-app.yaml")),
    ("components/cart.yaml", include_str!("../../../deploy/examples/components/cart.yaml")),
    ("components/checkout-service.yaml", include_str!("../../../deploy/examples/components/checkout-service.yaml")),
    ("components/email-digest.yaml", include_str!("../../../deploy/examples/components/email-digest.yaml")),
    ("components/frontend.yaml", include_str!("../../../deploy/examples/components/frontend.yaml")),
    ("components/product-catalog.yaml", include_str!("../../../deploy/examples/components/product-catalog.yaml")),
    ("components/recommendation.yaml", include_str!("../../../deploy/examples/components/recommendation.yaml")),
    ("env-settings/development/cart.yaml", include_str!("../../../deploy/examples/env-settings/development/cart.yaml")),
    ("env-settings/development/checkout-service.yaml", include_str!("../../../deploy/examples/env-settings/development/checkout-service.yaml")),
    ("env-settings/development/email-digest.yaml", include_str!("../../../deploy/examples/env-settings/development/email-digest.yaml")),
    ("env-settings/development/frontend.yaml", include_str!("../../../deploy/examples/env-settings/development/frontend.yaml")),
    ("env-settings/development/product-catalog.yaml", include_str!("../../../deploy/examples/env-settings/development/product-catalog.yaml")),
    ("env-settings/development/recommendation.yaml", include_str!("../../../deploy/examples/env-settings/development/recommendation.yaml")),
    ("env-settings/production-eu/cart.yaml", include_str!("../../../deploy/examples/env-settings/production-eu/cart.yaml")),
    ("env-settings/production-eu/checkout-service.yaml", include_str!("../../../deploy/examples/env-settings/production-eu/checkout-service.yaml")),
    ("env-settings/production-eu/email-digest.yaml", include_str!("../../../deploy/examples/env-settings/production-eu/email-digest.yaml")),
    ("env-settings/production-eu/frontend.yaml", include_str!("../../../deploy/examples/env-settings/production-eu/frontend.yaml")),
    ("env-settings/production-eu/product-catalog.yaml", include_str!("../../../deploy/examples/env-settings/production-eu/product-catalog.yaml")),
    ("env-settings/production-eu/recommendation.yaml", include_str!("../../../deploy/examples/env-settings/production-eu/recommendation.yaml")),
    ("env-settings/production-us/checkout-service.yaml", include_str!("../../../deploy/examples/env-settings/production-us/checkout-service.yaml")),
    ("env-settings/production-us/email-digest.yaml", include_str!("../../../deploy/examples/env-settings/production-us/email-digest.yaml")),
    ("env-settings/production-us/frontend.yaml", include_str!("../../../deploy/examples/env-settings/production-us/frontend.yaml")),
    ("env-settings/production-us/product-catalog.yaml", include_str!("../../../deploy/examples/env-settings/production-us/product-catalog.yaml")),
    ("env-settings/staging/checkout-service.yaml", include_str!("../../../deploy/examples/env-settings/staging/checkout-service.yaml")),
    ("env-settings/staging/email-digest.yaml", include_str!("../../../deploy/examples/env-settings/staging/email-digest.yaml")),
    ("env-settings/staging/frontend.yaml", include_str!("../../../deploy/examples/env-settings/staging/frontend.yaml")),
    ("env-settings/staging/product-catalog.yaml", include_str!("../../../deploy/examples/env-settings/staging/product-catalog.yaml")),
    ("env-settings/staging/recommendation.yaml", include_str!("../../../deploy/examples/env-settings/staging/recommendation.yaml")),
    ("environments/data-plane.yaml", include_str!("../../../deploy/examples/environments/data-plane.yaml")),
    ("environments/development.yaml", include_str!("../../../deploy/examples/environments/development.yaml")),
    ("environments/pipeline.yaml", include_str!("../../../deploy/examples/environments/pipeline.yaml")),
    ("environments/production-eu.yaml", include_str!("../../../deploy/examples/environments/production-eu.yaml")),
    ("environments/production-us.yaml", include_str!("../../../deploy/examples/environments/production-us.yaml")),
    ("environments/staging.yaml", include_str!("../../../deploy/examples/environments/staging.yaml")),
    ("workloads/cart.yaml", include_str!("../../../deploy/examples/workloads/cart.yaml")),
    ("workloads/checkout-service.yaml", include_str!("../../../deploy/examples/workloads/checkout-service.yaml")),
    ("workloads/email-digest.yaml", include_str!("../../../deploy/examples/workloads/email-digest.yaml")),
    ("workloads/frontend.yaml", include_str!("../../../deploy/examples/workloads/frontend.yaml")),
    ("workloads/product-catalog.yaml", include_str!("../../../deploy/examples/workloads/product-catalog.yaml")),
    ("workloads/recommendation.yaml", include_str!("../../../deploy/examples/workloads/recommendation.yaml")),
];

/// How a pin is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Well,
    Rolling,
    Badly,
}

/// A pin: its version and how it is doing, and whether somebody holds it.
pub(super) type Cell = Option<(&'static str, Doing, bool)>;

const fn well(version: &'static str) -> Cell {
    Some((version, Doing::Well, false))
}

/// What runs where, in the order of the environments.
pub(super) const PINS: &[(&str, [Cell; 4])] = &[
    (
        "cart",
        [
            well("v0.9.0"),
            well("v0.9.0"),
            well("v0.8.7"),
            well("v0.8.7"),
        ],
    ),
    (
        "checkout-service",
        [
            well("v1.2.4"),
            well("v1.2.3"),
            Some(("v1.2.3", Doing::Badly, false)),
            well("v1.2.2"),
        ],
    ),
    (
        "email-digest",
        [well("v1.0.11"), well("v1.0.11"), well("v1.0.11"), None],
    ),
    (
        "frontend",
        [
            Some(("v5.2.0", Doing::Rolling, false)),
            well("v5.1.0"),
            Some(("v5.1.0", Doing::Well, true)),
            well("v5.1.0"),
        ],
    ),
    (
        "product-catalog",
        [
            well("v2.8.0"),
            well("v2.8.0"),
            well("v2.7.9"),
            well("v2.7.9"),
        ],
    ),
    (
        "recommendation",
        [well("v3.0.4"), well("v3.0.4"), None, None],
    ),
];

/// The environments of [`PINS`], in its order.
pub(super) const ENVIRONMENTS: [&str; 4] =
    ["development", "staging", "production-eu", "production-us"];

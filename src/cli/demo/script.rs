//! The script of the demo: the actions of its history, and the actions of simulated users while the demo runs.
//!
//! This module contains only data. Times are in seconds relative to the start of the demo, so times of the history
//! are negative. The engine plans and applies all actions, so the history, the audit entries and the diffs are real.

use crate::api::labels;

/// An action of a simulated user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deed {
    /// The time of the action, in seconds relative to the start of the demo.
    pub(super) at: i64,
    pub(super) who: &'static str,
    pub(super) component: &'static str,
    pub(super) what: What,
    /// The reason that the simulated user gives for the action; empty for no reason.
    pub(super) why: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Creates a release of this version, and deploys it to the first environment of the pipeline.
    Deploy(&'static str),
    /// Promotes from the first of these environments to the second.
    Promote(&'static str, &'static str),
    /// Rolls back in this environment to this version, and places a hold.
    Rollback(&'static str, &'static str),
    /// Places a hold in this environment for a number of seconds. None places a hold without an end.
    Hold(&'static str, Option<i64>),
    /// Removes the hold in this environment.
    Unhold(&'static str),
    /// Marks the release of this version bad.
    MarkBad(&'static str),
}

/// The health of a ReleasePin at the start of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartHealth {
    Well,
    /// The rollout has not ended. Contains the message of the Ready condition.
    Rolling(&'static str),
    /// The rollout has failed. Contains the message of the Ready condition.
    Badly(&'static str),
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

pub(super) const DEVELOPMENT: &str = "development";
const STAGING: &str = "staging";
const EU: &str = "production-eu";
const US: &str = "production-us";

const CART: &str = "cart";
const CHECKOUT: &str = "checkout-service";
const DIGEST: &str = "email-digest";
const FRONTEND: &str = "frontend";
const CATALOG: &str = "product-catalog";
const RECOMMENDATION: &str = "recommendation";

/// The user name of the controller. It makes the changes of components with `autoDeploy`.
const AUTOMATON: &str = labels::MANAGER_CONTROLLER;

const fn deed(
    at: i64,
    who: &'static str,
    component: &'static str,
    what: What,
    why: &'static str,
) -> Deed {
    Deed {
        at,
        who,
        component,
        what,
        why,
    }
}

use What::{Deploy, Hold, MarkBad, Promote, Rollback, Unhold};

/// The actions before the start of the demo. For each component, they are in the order of their times.
#[rustfmt::skip]
pub(super) const PAST: &[Deed] = &[
    deed(-61 * DAY,               "kai", CART, Deploy("v0.8.4"), "build 402"),
    deed(-60 * DAY,               "kai", CART, Deploy("v0.8.5"), "build 409"),
    deed(-59 * DAY,               "kai", CART, Promote(DEVELOPMENT, STAGING), "release train 31"),
    deed(-58 * DAY,               "ana", CART, Promote(STAGING, EU), "release train 31"),
    deed(-58 * DAY + HOUR,        "mei", CART, Promote(STAGING, US), "release train 31"),
    deed(-37 * DAY,               "kai", CART, Deploy("v0.8.6"), "build 431"),
    deed(-36 * DAY,               "kai", CART, Promote(DEVELOPMENT, STAGING), "release train 34"),
    deed(-35 * DAY,               "ana", CART, Promote(STAGING, EU), "release train 34"),
    deed(-35 * DAY + 3 * HOUR,    "mei", CART, Promote(STAGING, US), "release train 34"),
    deed(-12 * DAY,               "kai", CART, Deploy("v0.8.7"), "build 466"),
    deed(-11 * DAY,               "kai", CART, Promote(DEVELOPMENT, STAGING), "release train 38"),
    deed(-9 * DAY,                "ana", CART, Promote(STAGING, EU), "release train 38"),
    deed(-9 * DAY + 2 * HOUR,     "mei", CART, Promote(STAGING, US), "release train 38"),
    deed(-6 * DAY,                "mei", CART, Hold(US, Some(2 * DAY)), "regional sale"),
    deed(-27 * HOUR,              "mei", CART, Deploy("v0.9.0"), "carts survive a logout"),
    deed(-24 * HOUR,              "kai", CART, Promote(DEVELOPMENT, STAGING), "carts survive a logout"),

    deed(-47 * DAY,               AUTOMATON, CHECKOUT, Deploy("v1.1.8"), ""),
    deed(-44 * DAY,               AUTOMATON, CHECKOUT, Deploy("v1.1.9"), ""),
    deed(-43 * DAY,               "kai", CHECKOUT, Promote(DEVELOPMENT, STAGING), "release train 33"),
    deed(-42 * DAY,               "ana", CHECKOUT, Promote(STAGING, EU), "release train 33"),
    deed(-42 * DAY + 2 * HOUR,    "mei", CHECKOUT, Promote(STAGING, US), "release train 33"),
    deed(-21 * DAY,               AUTOMATON, CHECKOUT, Deploy("v1.2.0"), ""),
    deed(-20 * DAY,               "kai", CHECKOUT, Promote(DEVELOPMENT, STAGING), "release train 36"),
    deed(-19 * DAY,               "ana", CHECKOUT, Promote(STAGING, EU), "release train 36"),
    deed(-19 * DAY + HOUR,        "mei", CHECKOUT, Promote(STAGING, US), "release train 36"),
    deed(-11 * DAY,               AUTOMATON, CHECKOUT, Deploy("v1.2.1"), ""),
    deed(-10 * DAY,               "kai", CHECKOUT, Promote(DEVELOPMENT, STAGING), "new tax rules"),
    deed(-9 * DAY,                "ana", CHECKOUT, Promote(STAGING, EU), "new tax rules"),
    deed(-8 * DAY,                "mei", CHECKOUT, Promote(STAGING, US), "new tax rules"),
    deed(-30 * HOUR,              AUTOMATON, CHECKOUT, Deploy("v1.2.2"), ""),
    deed(-28 * HOUR,              "tom", CHECKOUT, Promote(DEVELOPMENT, STAGING), "faster checkout"),
    deed(-25 * HOUR,              "tom", CHECKOUT, Promote(STAGING, EU), "faster checkout"),
    deed(-4 * HOUR,               AUTOMATON, CHECKOUT, Deploy("v1.2.3"), ""),
    deed(-3 * HOUR,               "kai", CHECKOUT, Promote(DEVELOPMENT, STAGING), "INC-42 hotfix"),
    deed(-40 * MINUTE,            "tom", CHECKOUT, MarkBad("v1.2.2"), "leaks connections"),
    deed(-22 * MINUTE,            "ana", CHECKOUT, Promote(STAGING, EU), "INC-42 hotfix"),
    deed(-12 * MINUTE,            AUTOMATON, CHECKOUT, Deploy("v1.2.4"), ""),

    deed(-40 * DAY,               "mei", DIGEST, Deploy("v1.0.9"), "build 77"),
    deed(-39 * DAY,               "mei", DIGEST, Promote(DEVELOPMENT, STAGING), "release train 34"),
    deed(-38 * DAY,               "ana", DIGEST, Promote(STAGING, EU), "release train 34"),
    deed(-20 * DAY,               "mei", DIGEST, Deploy("v1.0.10"), "build 83"),
    deed(-19 * DAY,               "mei", DIGEST, Promote(DEVELOPMENT, STAGING), "release train 37"),
    deed(-18 * DAY,               "ana", DIGEST, Promote(STAGING, EU), "release train 37"),
    deed(-17 * DAY - 9 * HOUR,    "tom", DIGEST, Rollback(EU, "v1.0.9"), "INC-38: customers got two mails"),
    deed(-17 * DAY,               "mei", DIGEST, MarkBad("v1.0.10"), "sends every mail twice"),
    deed(-6 * DAY,                "mei", DIGEST, Deploy("v1.0.11"), "INC-38: no mail twice"),
    deed(-5 * DAY,                "mei", DIGEST, Promote(DEVELOPMENT, STAGING), "INC-38: no mail twice"),
    deed(-4 * DAY,                "tom", DIGEST, Unhold(EU), "INC-38 is fixed"),
    deed(-4 * DAY + 5 * MINUTE,   "ana", DIGEST, Promote(STAGING, EU), "INC-38: no mail twice"),

    deed(-33 * DAY,               AUTOMATON, FRONTEND, Deploy("v5.0.2"), ""),
    deed(-32 * DAY,               "kai", FRONTEND, Promote(DEVELOPMENT, STAGING), "release train 35"),
    deed(-31 * DAY,               "ana", FRONTEND, Promote(STAGING, EU), "release train 35"),
    deed(-31 * DAY + HOUR,        "mei", FRONTEND, Promote(STAGING, US), "release train 35"),
    deed(-8 * DAY,                AUTOMATON, FRONTEND, Deploy("v5.1.0"), ""),
    deed(-7 * DAY,                "kai", FRONTEND, Promote(DEVELOPMENT, STAGING), "release train 39"),
    deed(-5 * DAY,                "ana", FRONTEND, Promote(STAGING, EU), "release train 39"),
    deed(-5 * DAY + 2 * HOUR,     "mei", FRONTEND, Promote(STAGING, US), "release train 39"),
    deed(-2 * DAY,                "ana", FRONTEND, Hold(EU, Some(4 * DAY)), "sale weekend"),
    deed(-40,                     AUTOMATON, FRONTEND, Deploy("v5.2.0"), ""),

    deed(-45 * DAY,               "tom", CATALOG, Deploy("v2.7.8"), "build 310"),
    deed(-44 * DAY,               "tom", CATALOG, Promote(DEVELOPMENT, STAGING), "release train 33"),
    deed(-43 * DAY,               "ana", CATALOG, Promote(STAGING, EU), "release train 33"),
    deed(-43 * DAY + 2 * HOUR,    "mei", CATALOG, Promote(STAGING, US), "release train 33"),
    deed(-16 * DAY,               "tom", CATALOG, Deploy("v2.7.9"), "build 322"),
    deed(-15 * DAY,               "tom", CATALOG, Promote(DEVELOPMENT, STAGING), "release train 37"),
    deed(-14 * DAY,               "ana", CATALOG, Promote(STAGING, EU), "release train 37"),
    deed(-14 * DAY + HOUR,        "mei", CATALOG, Promote(STAGING, US), "release train 37"),
    deed(-30 * HOUR,              "tom", CATALOG, Deploy("v2.8.0"), "search in French"),
    deed(-26 * HOUR,              "kai", CATALOG, Promote(DEVELOPMENT, STAGING), "search in French"),

    deed(-15 * DAY,               "mei", RECOMMENDATION, Deploy("v3.0.3"), "build 58"),
    deed(-14 * DAY,               "mei", RECOMMENDATION, Promote(DEVELOPMENT, STAGING), "first load test"),
    deed(-4 * DAY,                "mei", RECOMMENDATION, Deploy("v3.0.4"), "model of October"),
    deed(-3 * DAY,                "mei", RECOMMENDATION, Promote(DEVELOPMENT, STAGING), "model of October"),
];

/// The ReleasePins that are not healthy at the start of the demo.
pub(super) const FARES: &[(&str, &str, StartHealth)] = &[
    (
        FRONTEND,
        DEVELOPMENT,
        StartHealth::Rolling("Deployment frontend: 0 of 1 ready"),
    ),
    (
        CHECKOUT,
        EU,
        StartHealth::Badly(
            "Deployment checkout-service: 0 of 1 ready, CrashLoopBackOff: container migrate",
        ),
    ),
];

/// The actions of simulated users while the demo runs. They are few and break nothing, so that they do not disturb
/// the real user.
#[rustfmt::skip]
pub(super) const COMPANY: &[Deed] = &[
    deed(25,          "mei", CART, Deploy("v0.9.1"), "rounds discounts"),
    deed(70,          "kai", FRONTEND, Promote(DEVELOPMENT, STAGING), "gift cards for the testers"),
    deed(115,         "tom", RECOMMENDATION, Hold(STAGING, Some(2 * HOUR)), "load test tonight"),
    deed(160,         "mei", CART, Promote(DEVELOPMENT, STAGING), "rounds discounts"),
    deed(4 * MINUTE,  "mei", RECOMMENDATION, Deploy("v3.0.5"), "model of November"),
    deed(6 * MINUTE,  "ana", CATALOG, Hold(US, Some(4 * HOUR)), "stocktaking"),
    deed(9 * MINUTE,  "mei", DIGEST, Deploy("v1.0.12"), "build 91"),
    deed(12 * MINUTE, "mei", DIGEST, Promote(DEVELOPMENT, STAGING), "release train 41"),
    deed(15 * MINUTE, "tom", CATALOG, Deploy("v2.8.1"), "build 340"),
];

/// Returns the components that the history is about.
pub(super) fn components() -> Vec<&'static str> {
    let mut components: Vec<&str> = PAST.iter().map(|deed| deed.component).collect();
    components.dedup();
    components
}

/// Returns the version that the last deploy of a component in the history creates; None if no deploy does.
pub(super) fn newest(component: &str) -> Option<&'static str> {
    let own = PAST.iter().filter(|deed| deed.component == component);
    own.filter_map(|deed| match deed.what {
        Deploy(version) => Some(version),
        _ => None,
    })
    .next_back()
}

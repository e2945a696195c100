//! Invalid and borderline commands. bowline either executes such a command, or refuses it with a message and
//! a next step.

use std::sync::Arc;

use bowline::api::DeploymentPipeline;
use bowline::engine::publish::{Applied, apply};
use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::place::Target;
use crate::shop::Shop;
use crate::user::User;

pub async fn what_is_not_there_is_named(target: Arc<Target>) {
    let _shop = Shop::open(&target, &["cart"]).await;
    let user = User::of(&target);
    for (line, code, why) in [
        (
            "promote nobody --from dev --to staging",
            1,
            "component nobody does not exist; known: cart",
        ),
        (
            "deploy cart -e moon --release cart-1",
            1,
            "environment moon does not exist; known: dev, prod, staging",
        ),
        (
            "promote cart --from moon --to staging",
            1,
            "environment moon does not exist; known: dev, prod, staging",
        ),
        (
            "deploy cart -e dev --release cart-9",
            1,
            "release cart-9 does not exist; known: cart-3, cart-2, cart-1\nhint: list all releases: bowline release list",
        ),
        (
            "rollback cart -e dev --to nothing",
            1,
            "release nothing does not exist; known: ",
        ),
        (
            "rollback cart -e staging --to cart-1",
            1,
            "cart is not deployed in staging\nhint: to deploy it there: bowline promote cart --from dev --to staging",
        ),
        (
            "deploy cart -e staging --release cart-1",
            5,
            "staging is not a first environment of the pipeline\nhint: deploy to dev and promote",
        ),
        ("unpin cart -e dev", 1, "cart has no hold in dev"),
        ("deploy", 2, "--environment"),
        ("deploy -e dev", 2, "hint: "),
        ("history cart -e moon", 1, "cart is not deployed in moon"),
    ] {
        user.ends(line, code, why).await;
    }
}

pub async fn a_pipeline_that_leads_in_a_circle_is_refused(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    let pipelines: Api<DeploymentPipeline> = Api::default_namespaced(shop.client.clone());
    let path = |from: &str, to: &str| json!({"sourceEnvironmentRef": {"name": from}, "targetEnvironmentRefs": [{"name": to}]});
    let circle = json!({"spec": {"promotionPaths": [path("dev", "staging"), path("staging", "prod"), path("prod", "dev")]}});
    let (params, circle) = (PatchParams::default(), Patch::Merge(circle));
    pipelines.patch("default", &params, &circle).await.unwrap();
    target.settle().await;
    let user = User::of(&target);
    for line in [
        "promote cart --from dev --to staging --unready",
        "deploy cart -e dev --release cart-1",
    ] {
        let ran = user.ends(line, 5, "hint: ").await;
        for environment in ["dev", "staging", "prod"] {
            assert!(ran.err.contains(environment), "{line}: {}", ran.err);
        }
    }
    let ran = user.ends("status", 0, "").await;
    assert!(ran.out.contains("lead in a circle"), "{}", ran.out);
    // A command with --skip-path and a reason is executed despite the cycle.
    user.done("deploy cart -e dev --release cart-1 --skip-path --reason circle")
        .await;
}

pub async fn a_hold_that_has_expired_stops_nothing(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    let user = User::of(&target);
    let past = Timestamp::now() - SignedDuration::from_mins(1);
    let since = past - SignedDuration::from_hours(1);
    let hold = json!([{"id": "h", "owner": "bob", "reason": "INC-1", "since": since, "until": past, "release": "cart-1"}]);
    let (params, hold) = (
        PatchParams::default(),
        Patch::Merge(json!({"spec": {"holds": hold}})),
    );
    shop.pins().patch("cart-dev", &params, &hold).await.unwrap();
    target.settle().await;
    let (status, _) = user.done("status -o json").await;
    let status: Value = serde_json::from_str(&status).unwrap();
    let cell = &status["components"][0]["environments"][0];
    assert_eq!(
        (&cell["release"], &cell["held"], &cell["holdExpired"]),
        (&json!("cart-2"), &json!(false), &json!(true))
    );
    let (matrix, _) = user.done("status").await;
    assert!(matrix.contains("2 (hold expired)"), "{matrix}");
    let (out, _) = user.done("deploy cart -e dev --release cart-3").await;
    assert_eq!(out, "cart in dev: cart-2 -> cart-3, 1 hold (revision 3)\n");
    target.settle().await;
    let pin = shop.pins().get("cart-dev").await.unwrap();
    assert_eq!(pin.spec.holds.len(), 1, "it stays listed");
    user.done("unpin cart -e dev").await;
    assert_eq!(shop.chain("cart-dev").await.len(), 4);
}

pub async fn a_pin_whose_release_is_gone_can_be_rolled_back(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    let user = User::of(&target);
    let params = DeleteParams::default();
    shop.releases().delete("cart-2", &params).await.unwrap();
    target.settle().await;
    let (matrix, _) = user.done("status").await;
    assert!(matrix.contains("cart-2"), "{matrix}");
    user.ends(
        "promote cart --from dev --to staging --unready",
        1,
        "release cart-2 does not exist; known: cart-3, cart-1",
    )
    .await;
    user.ends("pin cart -e dev", 1, "release cart-2 does not exist")
        .await;
    let (out, _) = user.done("rollback cart -e dev --to cart-1").await;
    assert_eq!(out, "cart in dev: cart-2 -> cart-1, 1 hold (revision 2)\n");
    user.done("audit verify").await;
}

pub async fn clocks_that_disagree_do_no_harm(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    let user = User::of(&target);
    // The clock of one operator is an hour fast, and the clock of another operator is an hour slow.
    for (operation, hours, release) in [("fast", 1, "cart-1"), ("slow", -1, "cart-3")] {
        let off = SignedDuration::from_hours(hours);
        let plan = shop.deployment(&shop.feed().await.world(), release, operation, operation);
        let clock = move || Timestamp::now() + off;
        let done = apply(&shop.client, &plan, &plan.changes[0], &clock).await;
        assert!(matches!(done, Ok(Applied::Done(_))), "{done:?}");
    }
    // A hold whose start is in the future is already active, because only the end of a hold matters.
    let since = Timestamp::now() + SignedDuration::from_hours(1);
    let hold = json!([{"id": "h", "owner": "bob", "since": since, "release": "cart-2"}]);
    let (params, hold) = (
        PatchParams::default(),
        Patch::Merge(json!({"spec": {"holds": hold}})),
    );
    shop.pins().patch("cart-dev", &params, &hold).await.unwrap();
    user.ends(
        "deploy cart -e dev --release cart-1",
        5,
        "cart in dev is held at cart-2 (bob)\nhint: bowline unpin cart -e dev",
    )
    .await;
    user.done("unpin cart -e dev").await;
    // The audit entries are in the order of the revisions, not of the clocks.
    let entries = shop.chain("cart-dev").await.into_iter();
    let operations: Vec<_> = entries.map(|entry| entry.spec.operation).collect();
    assert_eq!(
        operations[1..3],
        [Some("fast".to_owned()), Some("slow".to_owned())]
    );
    let (history, _) = user.done("history cart -e dev").await;
    assert_eq!(history.lines().count(), 6, "{history}");
    user.done("audit verify").await;
}

pub async fn names_as_long_as_they_may_be(target: Arc<Target>) {
    let component = format!("c{}", "o".repeat(62));
    let shop = Shop::open(&target, &[&component]).await;
    let user = User::of(&target);
    let environment = format!("e{}", "n".repeat(62));
    let own = format!(
        "apiVersion: openchoreo.dev/v1alpha1\nkind: Environment\nmetadata: {{name: {environment}}}\nspec: {{dataPlaneRef: {{name: d}}, namespace: e}}\n"
    );
    std::fs::write(target.home.path().join("environment.yaml"), own).unwrap();
    user.done("apply -f environment.yaml").await;
    target.settle().await;
    let release = format!("r{}", "e".repeat(252));
    shop.release(&component, "9", &release).await;
    let line =
        format!("deploy {component} -e {environment} --release {release} --skip-path --reason x");
    let (out, _) = user.done(&line).await;
    assert!(out.ends_with("(revision 1)\n"), "{out}");
    let (out, _) = user.done(&line).await;
    assert!(out.ends_with("(no change)\n"), "{out}");
    user.done(&format!(
        "pin {component} -e {environment} --release {release} --until 1h"
    ))
    .await;
    user.done(&format!("unpin {component} -e {environment}"))
        .await;
    user.done(&format!(
        "rollback {component} -e {environment} --to {component}-1"
    ))
    .await;
    let pin = format!("{component}-{environment}");
    assert_eq!(shop.chain(&pin).await.len(), 4);
    user.done("audit verify").await;
    let (history, _) = user
        .done(&format!("history {component} -e {environment}"))
        .await;
    assert_eq!(history.lines().count(), 5, "{history}");
    // A name with one more character is refused: no component of that name can exist.
    user.ends(
        &format!("deploy {component}x -e dev --release x"),
        1,
        "does not exist",
    )
    .await;
}

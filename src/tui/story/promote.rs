//! Promotions from one environment to the next.

use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::Story;
use super::shop::settled;
use crate::api::ReleasePin;
use crate::connect::Options;

#[tokio::test]
async fn a_promotion_to_staging_takes_a_key_after_the_change_was_shown() {
    let mut story = Story::shop().await;
    story.keys("g g h h").shows("cart in dev").await;
    story.keys("P").shows("[ y apply ]").await;
    story.shows("data.image").await;
    story
        .shows("bowline promote cart --from dev --to staging")
        .await;
    story
        .keys("y")
        .shows("cart in staging rolls out cart-v3, revision 2")
        .await;
    assert_eq!(story.names("cart", "staging").await, "cart-v3");
    story
        .shows("no controller has observed the change yet")
        .await;
    settled(&story.client, "cart", "staging", json!(null)).await;
    story.shows("cart-staging became ready with").await;
}

#[tokio::test]
async fn enter_cancels_what_a_key_confirms() {
    let mut story = Story::shop().await;
    story.keys("g g h h P").shows("[ y apply ]").await;
    story.shows("data.image").await;
    story.keys("enter").shows("cart in dev").await;
    assert_eq!(story.names("cart", "staging").await, "cart-v2");
}

#[tokio::test]
async fn what_is_not_ready_or_is_marked_bad_is_not_promoted() {
    let mut story = Story::shop().await;
    story.meanwhile("tom", "cart-dev", "cart-v1").await;
    story.keys("g g h h").shows("tom changed cart in dev").await;
    story.keys("P").shows("cart is not ready in dev").await;
    story.shows("refused").await;
    story.keys("esc g r /").types("v3").keys("enter B");
    story.shows("type why").await;
    story.types("leaks").keys("enter");
    story.shows("cart-v3 is marked bad").await;
    story.meanwhile("tom", "cart-dev", "cart-v3").await;
    settled(&story.client, "cart", "dev", json!(null)).await;
    story.keys("g m").shows("bad").await;
    story.keys("P").shows("release cart-v3 is marked bad").await;
    story.shows("A marks this release good").await;
    assert_eq!(story.names("cart", "staging").await, "cart-v2");
}

#[tokio::test]
async fn a_promotion_that_somebody_overtook_is_not_done() {
    let mut story = Story::shop().await;
    story.keys("g g h h P").shows("data.image").await;
    story.meanwhile("tom", "cart-staging", "cart-v1").await;
    // The open plan names the fact that changed and the user who changed it. It cannot be applied any more.
    story.shows("tom changed cart-staging to cart-v1").await;
    story
        .keys("y")
        .shows("out of date: ctrl-r plans again")
        .await;
    assert_eq!(story.names("cart", "staging").await, "cart-v1");
    story.keys("ctrl-r").shows("from      cart-v1").await;
    story.shows("data.image").await;
    story
        .keys("y")
        .shows("cart in staging rolls out cart-v3, revision 3")
        .await;
}

#[tokio::test]
async fn an_open_promotion_follows_its_source_and_its_release() {
    let mut story = Story::shop().await;
    story.keys("g g h h P").shows("data.image").await;
    let pins: Api<ReleasePin> = Api::default_namespaced(story.client.clone());
    let failed = json!({"status": {"conditions": [{
        "type": "Ready", "status": "False", "reason": "Degraded", "message": "0 of 2 ready",
        "lastTransitionTime": "2026-01-06T12:40:00Z",
    }]}});
    let params = PatchParams::default();
    pins.patch_status("cart-dev", &params, &Patch::Merge(&failed))
        .await
        .unwrap();
    story
        .shows("cart-dev is no longer ready: 0 of 2 ready")
        .await;
    // When cart is ready again, all facts of the plan are true again.
    settled(&story.client, "cart", "dev", json!(null)).await;
    let namespace = story.model.target_info.namespace.clone();
    let ready = crate::engine::world::Key::new(&namespace, "cart-dev");
    let is_ready = |world: &crate::engine::world::World| {
        let pin = world.pin(&ready).and_then(|pin| pin.ready.as_ref());
        pin.is_some_and(|ready| &*ready.status == "True")
    };
    story.knows(is_ready).await;
    story.hides("no longer ready");
    story
        .keys("y")
        .shows("cart in staging rolls out cart-v3, revision 2")
        .await;
}

#[tokio::test]
async fn a_task_keeps_the_outcome_of_its_own_revision() {
    let mut story = Story::promoted().await;
    settled(&story.client, "cart", "staging", json!(null)).await;
    story.shows("cart-staging became ready with").await;
    story.meanwhile("tom", "cart-staging", "cart-v1").await;
    story.keys("esc").shows("tom changed cart in staging").await;
    story.keys("g t").shows("promote").await;
    story.hides("no controller has observed the change yet");
    story.shows("1 done").await;
}

#[tokio::test]
async fn a_read_only_session_shows_plans_and_applies_none() {
    let options = Options {
        readonly: true,
        ..Options::default()
    };
    let mut story = Story::with(options).await;
    story.shows("READ-ONLY").await;
    story
        .keys("g g h h P")
        .shows("read-only: --readonly was given")
        .await;
    story.shows("data.image").await;
    story.keys("y").hides("revision 2");
    assert_eq!(story.names("cart", "staging").await, "cart-v2");
}

#[tokio::test]
async fn a_promotion_goes_from_the_cell_under_the_cursor_to_the_next_environment() {
    let mut story = Story::shop().await;
    story.keys("g g h l").shows("cart in staging").await;
    story
        .keys("P")
        .shows("promote  cart  from  staging  to  prod")
        .await;
    story.keys("esc l").shows("cart in prod").await;
    story
        .keys("P")
        .shows("no promotion path starts at prod")
        .await;
    story.shows("put the cursor on staging").await;
    story
        .keys("h")
        .command("promote prod")
        .shows("promote  cart  from  staging  to  prod")
        .await;
}

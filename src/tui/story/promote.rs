//! Promotions: from one environment to the next.

use serde_json::json;

use super::Story;
use super::shop::settled;
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
        .shows("cart in staging is at cart-v3, revision 2")
        .await;
    assert_eq!(story.names("cart", "staging").await, "cart-v3");
    story.shows("no controller has seen the change yet").await;
    settled(&story.client, "cart", "staging", json!(null)).await;
    story.shows("cart-staging: ready").await;
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
    story.shows("bowline mark good cart-v3").await;
    assert_eq!(story.names("cart", "staging").await, "cart-v2");
}

#[tokio::test]
async fn a_promotion_that_somebody_overtook_is_not_done() {
    let mut story = Story::shop().await;
    story.keys("g g h h P").shows("data.image").await;
    story.meanwhile("tom", "cart-staging", "cart-v1").await;
    story.keys("y").shows("so nothing was done").await;
    story.shows("tom").await;
    assert_eq!(story.names("cart", "staging").await, "cart-v1");
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

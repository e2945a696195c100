//! Holds: placed, for a while or until lifted, respected and lifted.

use super::Story;

#[tokio::test]
async fn a_hold_is_placed_refuses_a_promotion_and_is_lifted() {
    let mut story = Story::shop().await;
    story.keys("g g h l").shows("cart in staging").await;
    story.keys("H").shows("a hold for ana").await;
    story.shows("nothing changes in the environment").await;
    story.keys("y").shows("cart in staging is at cart-v2").await;
    story.keys("esc").shows("Held by ana").await;
    story.keys("h P").shows("refused").await;
    story.shows("bowline unpin cart").await;
    story.keys("esc l U").shows("the hold of ana").await;
    story.shows("nothing changes in the environment").await;
    story.keys("y").shows("revision 3").await;
    assert!(story.pin("cart", "staging").await.spec.holds.is_empty());
}

#[tokio::test]
async fn a_hold_may_end_by_itself_and_says_why() {
    let mut story = Story::shop().await;
    story.keys("g g l l").shows("cart in prod").await;
    story.command("hold 4h").shows("type prod and why").await;
    story.shows("a hold for ana, until ").await;
    story.shows("nothing changes in the environment").await;
    story.types("prod freeze for the sale").keys("enter");
    story.shows("cart in prod is at cart-v2, revision 3").await;
    story.keys("esc").shows("Held by ana until ").await;
    story.shows("freeze for the sale").await;
    let pin = story.pin("cart", "prod").await;
    assert!(pin.spec.holds[0].until.is_some());
    assert_eq!(
        pin.spec.holds[0].reason.as_deref(),
        Some("freeze for the sale")
    );
}

#[tokio::test]
async fn what_is_no_hold_is_neither_placed_nor_lifted() {
    let mut story = Story::shop().await;
    story
        .keys("g g h h U")
        .shows("nobody holds cart in dev")
        .await;
    story.command("hold soon").shows("is not a duration").await;
    story.keys("* H").shows("one component at a time").await;
    story
        .command("hold 4h")
        .shows("one component is held at a time")
        .await;
    assert!(story.pin("cart", "dev").await.spec.holds.is_empty());
}

#[tokio::test]
async fn a_hold_on_what_somebody_moved_meanwhile_is_not_placed() {
    let mut story = Story::shop().await;
    story.keys("g g h l H").shows("a hold for ana").await;
    story.shows("nothing changes in the environment").await;
    story.meanwhile("tom", "cart-staging", "cart-v1").await;
    story.keys("y").shows("so nothing was done").await;
    assert!(story.pin("cart", "staging").await.spec.holds.is_empty());
}

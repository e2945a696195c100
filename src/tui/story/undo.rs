//! Stories about undo: it reverses exactly the last action.

use super::Story;

#[tokio::test]
async fn what_was_just_done_is_undone_from_its_own_screen() {
    let mut story = Story::promoted().await;
    story.keys("Z").shows("undo  cart  in  staging").await;
    story.shows("data.image").await;
    story.shows("bowline undo cart --environment staging").await;
    story.keys("y");
    story
        .shows("cart in staging rolls out cart-v2, revision 3")
        .await;
    assert_eq!(story.names("cart", "staging").await, "cart-v2");
    // An undo is itself an action, so a second undo reverses the first.
    story.keys("esc l Z").shows("undo  cart  in  staging").await;
    story.shows("cart-v3").await;
}

#[tokio::test]
async fn where_nothing_was_before_or_is_on_record_nothing_is_undone() {
    let mut story = Story::shop().await;
    story.keys("g g j h h").shows("ledger in dev").await;
    story.keys("Z").shows("there is no earlier state").await;
    story.shows("refused").await;
    story.keys("esc k l l").shows("cart in prod").await;
    story.keys("Z").shows("is not recorded").await;
}

#[tokio::test]
async fn what_somebody_did_afterwards_is_not_taken_for_ones_own() {
    let mut story = Story::promoted().await;
    story.meanwhile("tom", "cart-staging", "cart-v1").await;
    story.shows("tom changed cart in staging").await;
    story
        .keys("Z")
        .shows("undo only reverses the last change")
        .await;
    story.keys("esc g t").shows("promote").await;
    story
        .keys("Z")
        .shows("undo only reverses the last change")
        .await;
    assert_eq!(story.names("cart", "staging").await, "cart-v1");
}

#[tokio::test]
async fn an_undo_that_somebody_overtook_is_not_done() {
    let mut story = Story::promoted().await;
    story.keys("Z").shows("undo  cart  in  staging").await;
    story.shows("data.image").await;
    story.meanwhile("tom", "cart-staging", "cart-v1").await;
    story.shows("tom changed cart-staging to cart-v1").await;
    story
        .keys("y")
        .shows("out of date: ctrl-r plans again")
        .await;
    assert_eq!(story.names("cart", "staging").await, "cart-v1");
}

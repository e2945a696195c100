//! Deployments into the environments at the start of the pipeline.

use kube::api::{Api, DeleteParams};
use serde_json::json;

use super::Story;
use super::shop::settled;
use crate::api::DeploymentPipeline;
use crate::engine::world::Key;

#[tokio::test]
async fn a_release_of_the_definitions_is_made_and_deployed_where_the_pipeline_begins() {
    let mut story = Story::shop().await;
    story.keys("g g h h").shows("cart in dev").await;
    story.keys("D").shows("deploy  cart  into  dev").await;
    story.shows("creates release").await;
    story.shows("shop/cart:v1").await;
    story.keys("y").shows("cart in dev rolls out cart-").await;
    story.shows("revision 2").await;
    let name = story.names("cart", "dev").await;
    assert!(!["cart-v1", "cart-v3"].contains(&&*name), "{name}");
    assert!(story.release(&name).await.is_some());
    settled(&story.client, "cart", "dev", json!(null)).await;
    story.shows("cart-dev became ready with").await;
    // Opens the shop with two more releases, v4 and v5. No ReleasePin names them, and the retention protects only the
    // newer one from gc.
    story.keys("esc D").shows("nothing would change").await;
}

#[tokio::test]
async fn a_release_that_was_chosen_is_deployed_unless_it_is_bad() {
    let mut story = Story::shop().await;
    story.keys("g r /").types("cart-v2").keys("enter D");
    story
        .shows("bowline deploy cart --environment dev --release cart-v2")
        .await;
    story
        .keys("y")
        .shows("cart in dev rolls out cart-v2, revision 2")
        .await;
    story.keys("esc B").shows("type why").await;
    story
        .types("leaks")
        .keys("enter")
        .shows("is marked bad")
        .await;
    story
        .keys("esc D")
        .shows("release cart-v2 is marked bad")
        .await;
    story.shows("refused").await;
}

#[tokio::test]
async fn what_is_held_or_on_no_pipeline_is_not_deployed() {
    let mut story = Story::shop().await;
    story.keys("g g h h H enter").shows("[ y apply ]").await;
    story.keys("y").shows("pinned cart in dev at cart-v3").await;
    story
        .keys("esc D")
        .shows("cart in dev is held at cart-v3 (ana")
        .await;
    story.shows("U removes the hold").await;
    let pipelines: Api<DeploymentPipeline> = Api::default_namespaced(story.client.clone());
    pipelines
        .delete("default", &DeleteParams::default())
        .await
        .unwrap();
    let namespace = story.model.target_info.namespace.clone();
    story
        .knows(|world| world.pipeline(&namespace).is_none())
        .await;
    story.keys("esc D").shows("has no DeploymentPipeline").await;
}

#[tokio::test]
async fn a_deployment_that_somebody_overtook_is_not_done() {
    let mut story = Story::shop().await;
    story.keys("g g h h D").shows("creates release").await;
    story.shows("shop/cart:v1").await;
    story.meanwhile("tom", "cart-dev", "cart-v1").await;
    story.shows("tom changed cart-dev to cart-v1").await;
    story
        .keys("y")
        .shows("out of date: ctrl-r plans again")
        .await;
    assert_eq!(story.names("cart", "dev").await, "cart-v1");
}

#[tokio::test]
async fn a_deployment_goes_into_the_environment_under_the_cursor() {
    let mut story = Story::shop().await;
    story.keys("g g h l").shows("cart in staging").await;
    story
        .keys("D")
        .shows("deploy  cart  into  staging, past the promotion path")
        .await;
    story.shows("--environment staging --skip-path").await;
    // This deployment skips the promotion from the environment before, so it needs a reason.
    story.shows("type why").await;
    story.shows("shop/cart:v1").await;
    story.keys("enter").shows("Type a reason").await;
    story.types("hotfix").keys("enter");
    story.shows("cart in staging rolls out cart-").await;
    story.shows("revision 2").await;
    assert_eq!(story.names("cart", "dev").await, "cart-v3");
    story.keys("esc");
    story
        .command("deploy cart-v2")
        .shows("--release cart-v2")
        .await;
}

#[tokio::test]
async fn a_cancelled_deployment_leaves_no_release_behind() {
    let mut story = Story::shop().await;
    story.keys("g g h h D").shows("creates release").await;
    story.shows("shop/cart:v1").await;
    let namespace = story.model.target_info.namespace.clone();
    let cart = Key::new(&namespace, "cart");
    story.keys("esc").hides("creates release");
    story.command("releases").shows("4 releases").await;
    let world = story.session.feed.world();
    assert_eq!(world.releases_of(&cart).count(), 3);
}

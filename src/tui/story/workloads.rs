//! Workloads on a cluster without bowline's kinds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams};

use super::Story;
use crate::fixture;

/// Opens a store with the Deployment web, which has three revisions, and without bowline's kinds.
async fn cluster() -> Story {
    let mut story = Story::without_kinds().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(story.client.clone());
    let entries = "auditentries.bowline.dev";
    let deleted = definitions.delete(entries, &DeleteParams::default()).await;
    deleted.unwrap();
    fixture::create_deployment(&story.client, "web", &["web:1", "web:2", "web:3"]).await;
    story.shows("rev 2 web:2").await;
    story
}

#[tokio::test]
async fn without_audit_entries_every_screen_says_where_the_record_is() {
    let note = "this cluster has no AuditEntries: annotations and Events record each change";
    let mut story = cluster().await;
    story.keys("R").shows("y apply").await;
    story.shows(note).await;
    story.shows("web:3 → web:2").await;
    story.keys("y").shows("rolls out rev 2 web:2").await;
    story.shows(note).await;
    story.keys("esc").shows("deploy/web").await;
    story.keys("enter").shows("LASTED").await;
    story.shows(note).await;
}

#[tokio::test]
async fn a_revision_is_marked_bad_and_good_from_the_history() {
    let mut story = cluster().await;
    story.keys("enter").shows("LASTED").await;
    story.keys("j B").shows("mark bad  revision 2").await;
    story.shows("type why").await;
    story.types("leaks");
    let line = "bowline mark bad deploy/web --revision 2 --reason leaks";
    story.shows(line).await;
    story.shows("no object changes").await;
    story
        .keys("enter")
        .shows("rev 2 web:2 of deploy/web is marked bad")
        .await;
    story.keys("esc").shows("marked bad by ana: leaks").await;
    // The rollback skips the revision.
    story.keys("esc").shows("rev 1 web:1").await;
    story.keys("enter").shows("web:2 bad").await;
    story.keys("j B").shows("Already marked bad").await;
    story
        .keys("esc R")
        .shows("rev 2 of deploy/web is marked bad by ana: leaks")
        .await;
    story.keys("esc A").shows("type why").await;
    story.shows("no object changes").await;
    story.types("mended").keys("enter");
    story
        .shows("rev 2 web:2 of deploy/web is marked good")
        .await;
}

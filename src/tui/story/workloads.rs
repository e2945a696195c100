//! Workloads on a cluster without bowline's kinds.

use super::Story;
use crate::fixture;

#[tokio::test]
async fn without_audit_entries_every_screen_says_where_the_record_is() {
    let note = "this cluster has no AuditEntries: annotations and Events record each change";
    let mut story = Story::without_kinds().await;
    fixture::create_deployment(&story.client, "web", &["web:1", "web:2", "web:3"]).await;
    story.shows("rev 2 web:2").await;
    story.keys("R").shows("y apply").await;
    story.shows(note).await;
    story.keys("y").shows("rolls out rev 2 web:2").await;
    story.shows(note).await;
    story.keys("esc").shows("deploy/web").await;
    story.keys("enter").shows("LASTED").await;
    story.shows(note).await;
}

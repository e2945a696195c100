//! Past times: the matrix at a past time, and the changes and the timeline of an incident.

use super::Story;

#[tokio::test]
async fn the_matrix_of_a_moment_shows_what_ran_and_plans_nothing() {
    let mut story = Story::promoted().await;
    story.keys("esc");
    story.keys("T").shows("AS OF").await;
    story.shows("cart in staging promoted by ana").await;
    story.keys("R").shows("this is the past").await;
    story.keys("[").hides("promoted by ana");
    story.shows("AS OF").await;
    story.keys("esc").hides("AS OF");
}

#[tokio::test]
async fn what_changed_around_an_incident_is_ranked() {
    let mut story = Story::promoted().await;
    story.keys("esc");
    story.command("since 1m");
    story.shows("the closest first").await;
    story.shows("promoted by ana").await;
}

#[tokio::test]
async fn a_timeline_is_written_once_and_over_nothing() {
    let mut story = Story::promoted().await;
    story.keys("esc");
    let file = story.file("incident.md");
    let line = format!("export incident {}", file.display());
    story.command(&line).shows("written to").await;
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("# Timeline of "), "{written}");
    assert!(
        written.contains("cart-v3") && written.contains("ana"),
        "{written}"
    );
    story.command(&line).shows("cannot write").await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
    story
        .command("export")
        .shows(":export incident [START [END]] [FILE]")
        .await;
}

use serde_json::json;

use super::*;

#[test]
fn a_proposal_shows_what_changes_in_the_files() {
    let edit = |path: &str, before: Option<&str>, after: Option<&str>| FileEdit {
        path: path.to_owned(),
        before: before.map(|text| text.as_bytes().to_vec()),
        after: after.map(|text| text.as_bytes().to_vec()),
    };
    let proposal = Proposal {
        operation: "x".to_owned(),
        message: "promote\n\nwhy\n".to_owned(),
        edits: vec![
            edit("a.yaml", Some("a: 1\nb: 2\n"), Some("a: 1\nb: 3\n")),
            edit("b.yaml", None, Some("c: 4\n")),
            edit("c.yaml", Some("d: 5\n"), None),
        ],
        facts: Default::default(),
        warnings: Vec::new(),
    };
    assert_eq!(proposal.subject(), "promote");
    let files = proposal.json();
    assert_eq!(
        (&files[0]["path"], &files[1]["change"], &files[2]["change"]),
        (&json!("a.yaml"), &json!("added"), &json!("removed"))
    );
    // The contents after the edit differ, but only the contents on disk (`before`) are compared.
    let mut other = proposal.clone();
    other.edits[0].after = Some(b"a: 1\nb: 4\n".to_vec());
    assert_eq!(other.differs_from(&proposal), None);
    other.edits[1].before = Some(b"c: 3\n".to_vec());
    assert_eq!(other.differs_from(&proposal), Some("b.yaml"));
    let shown = proposal.diff();
    for words in [
        "--- a/a.yaml\n+++ b/a.yaml\n",
        "-b: 2\n+b: 3\n",
        "--- /dev/null\n+++ b/b.yaml\n",
        "removed c.yaml\n",
    ] {
        assert!(shown.contains(words), "{words:?} is not in {shown}");
    }
}

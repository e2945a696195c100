use kube::api::{DeleteParams, PostParams};

use super::*;
use crate::api::bowline::audit::{Action, ContentRef};
use crate::api::openchoreo::pin::ReleasePinSpec;
use crate::api::openchoreo::reference::NameRef;
use crate::api::operation::Operation;
use crate::connect::StoreFile;
use crate::engine::audit::{OnRelease, Recorder};
use crate::engine::subject::dynamic;
use crate::subjects::release_pin::kind::KIND;

const NOW: &str = "2026-03-01T12:00:00Z";

/// A store with an audit history: bowline deployed and promoted checkout, a user edited the ReleasePin by hand, and a
/// release is marked bad.
struct Fixture {
    options: Options,
    environment: Environment,
    connection: Connection,
    _directory: tempfile::TempDir,
}

impl Fixture {
    async fn new() -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("bowline.db");
        crate::fixture::store::place(&store);
        let options = Options {
            embedded: Some(StoreFile::At(store)),
            ..Options::default()
        };
        let environment = Environment {
            user: "ana".to_owned(),
            ..Environment::default()
        };
        let connection = connect::connect(&options, &environment).await.unwrap();
        let fixture = Fixture {
            options,
            environment,
            connection,
            _directory: directory,
        };
        fixture.history().await;
        fixture
    }

    fn entries(&self) -> Api<AuditEntry> {
        Api::namespaced(self.connection.client.clone(), &self.connection.namespace)
    }

    async fn history(&self) {
        let pins: Api<ReleasePin> =
            Api::namespaced(self.connection.client.clone(), &self.connection.namespace);
        let now: Timestamp = NOW.parse().unwrap();
        let recorder = Recorder {
            by: "ana",
            now,
            known: &[],
        };
        let spec = ReleasePinSpec {
            component: "checkout".into(),
            environment: "production".into(),
            release_ref: NameRef::new("checkout-1"),
            holds: vec![],
        };
        let mut pin = ReleasePin::new("checkout-production", spec);
        for (label, value) in [
            (labels::COMPONENT, "checkout"),
            (labels::ENVIRONMENT, "production"),
        ] {
            pin.labels_mut().insert(label.into(), value.into());
        }
        let create = PostParams::default();
        let mut newest: Option<AuditEntry> = None;
        for step in 1..=3 {
            if step == 2 {
                let operation = Operation {
                    id: "op-2".into(),
                    number: 2,
                    action: Action::Promote,
                    at: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now),
                    reason: Some("ship | it\n\u{1b}[2J".into()),
                    from: Some(ContentRef::named("checkout-1")),
                    to: Some(ContentRef::named("checkout-2")),
                    actor: None,
                    holds_before: Vec::new(),
                    rendered_hash: None,
                    restored_from: None,
                };
                let head = newest.as_ref().map(audit::link).unwrap();
                let annotations = pin.annotations_mut();
                annotations.insert(labels::OPERATION.into(), operation.to_annotation());
                annotations.insert(labels::AUDIT_HEAD.into(), head);
            }
            pin.spec.release_ref = NameRef::new(format!("checkout-{step}"));
            pin = match step {
                1 => pins.create(&create, &pin).await.unwrap(),
                _ => pins.replace(&pin.name_any(), &create, &pin).await.unwrap(),
            };
            for entry in audit::missing(&KIND, &dynamic(&pin), newest.as_ref(), &recorder).unwrap()
            {
                newest = Some(self.entries().create(&create, &entry).await.unwrap());
            }
        }
        let mark = OnRelease {
            release: ContentRef::named("checkout-1"),
            action: Action::MarkBad,
            operation: None,
            actor: Some("bo"),
            reason: Some("it leaks"),
        };
        let entry = audit::of_release("checkout", &mark, None, &recorder);
        self.entries().create(&create, &entry).await.unwrap();
    }

    async fn run(&self, line: &[&str]) -> Result<(String, Exit, Vec<String>), Error> {
        let line: Vec<&str> = ["bowline", "audit"].iter().chain(line).copied().collect();
        let parsed = <super::super::Cli as clap::Parser>::try_parse_from(line).unwrap();
        let Some(super::super::Verb::Audit(verb)) = parsed.verb else {
            panic!("no audit verb");
        };
        let mut said = Vec::new();
        let now = NOW.parse().unwrap();
        let mut say = |line| said.push(line);
        let outcome = run(&verb, &self.options, &self.environment, now, &mut say).await?;
        Ok((outcome.text, outcome.exit, said))
    }

    async fn prints(&self, line: &[&str]) -> String {
        let (text, exit, said) = self.run(line).await.unwrap();
        assert_eq!(exit, Exit::Done, "{line:?}: {text} {said:?}");
        text
    }

    /// Returns the name of the ReleasePin's audit entry for a revision. The test must look it up, because the name
    /// contains a uid from the store.
    async fn name(&self, revision: i64) -> String {
        let entries = self.entries().list(&ListParams::default()).await.unwrap();
        entries
            .into_iter()
            .find(|entry| entry.spec.revision == revision && entry.spec.subject.uid.is_some())
            .map(|entry| entry.name_any())
            .unwrap()
    }
}

#[tokio::test]
async fn entries_are_listed_in_order_and_by_component_environment_and_time() {
    let fixture = Fixture::new().await;
    let table = fixture.prints(&["list"]).await;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 5, "{table}");
    assert!(lines[0].starts_with("NAME"), "{table}");
    assert!(
        table.contains("Promote") && table.contains("Edit"),
        "{table}"
    );
    let wide = fixture.prints(&["list", "-o", "wide"]).await;
    assert!(wide.contains("ship | it"), "{wide}");
    assert_eq!(crate::text::clean(&wide), wide);
    for (line, expected) in [
        (&["list", "-o", "name", "checkout"][..], 4),
        (
            &[
                "list",
                "-o",
                "name",
                "checkout",
                "--environment",
                "production",
            ],
            3,
        ),
        (&["list", "-o", "name", "--environment", "staging"], 0),
        (&["list", "-o", "name", "cart"], 0),
        (&["list", "-o", "name", "--since", "2999-01-01"], 0),
        (
            &["list", "-o", "name", "--since", "2026-01-01T00:00:00Z"],
            4,
        ),
    ] {
        let names = fixture.prints(line).await;
        assert_eq!(names.lines().count(), expected, "{line:?} {names}");
    }
    let json: Value = serde_json::from_str(&fixture.prints(&["list", "-o", "json"]).await).unwrap();
    assert_eq!(json["items"].as_array().unwrap().len(), 4);
    assert_eq!(json["items"][0]["kind"], "AuditEntry");
    let error = fixture.run(&["list", "--since", "soon"]).await.unwrap_err();
    assert_eq!(error.exit, Exit::Usage);
}

#[tokio::test]
async fn one_entry_is_shown_and_an_unknown_one_is_said() {
    let fixture = Fixture::new().await;
    let name = fixture.name(2).await;
    let (text, _, said) = fixture.run(&["show", &name]).await.unwrap();
    assert!(text.contains("action: Promote"), "{text}");
    assert!(!text.contains("managedFields"), "{text}");
    assert_eq!(said, Vec::<String>::new());
    let error = fixture.run(&["show", "nothing-1"]).await.unwrap_err();
    assert_eq!(error.exit, Exit::Failed);
    assert!(error.message.contains("nothing-1"));
}

#[tokio::test]
async fn verify_is_content_with_what_bowline_wrote_and_names_what_it_did_not() {
    let fixture = Fixture::new().await;
    for line in [
        &["verify"][..],
        &["verify", "checkout"],
        &["verify", "cart"],
    ] {
        assert_eq!(fixture.prints(line).await, "", "{line:?}");
    }
    let entries = fixture.entries();
    let name = fixture.name(2).await;
    let mut entry = entries.get(&name).await.unwrap();
    entry.spec.reason = Some("nothing to see".into());
    let refused = entries.replace(&name, &PostParams::default(), &entry).await;
    assert!(refused.is_err(), "the policy lets an entry change");

    entries
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    let (text, exit, _) = fixture.run(&["verify", "checkout"]).await.unwrap();
    assert_eq!(exit, Exit::Failed);
    assert!(
        text.contains("incomplete") && text.contains(&name),
        "{text}"
    );

    entry.metadata.resource_version = None;
    entry.metadata.uid = None;
    entries
        .create(&PostParams::default(), &entry)
        .await
        .unwrap();
    let (text, exit, said) = fixture.run(&["verify", "-o", "json"]).await.unwrap();
    assert_eq!(exit, Exit::Failed);
    let verdict: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        verdict["problems"][0]["object"],
        format!("auditentry/{name}")
    );
    assert_eq!(verdict["problems"][0]["severity"], "tampered");
    assert!(said[0].starts_with("4 entries in 2 chains: "), "{said:?}");
    let (_, _, said) = fixture.run(&["show", &name]).await.unwrap();
    assert!(said[0].contains("it was changed"), "{said:?}");
}

#[tokio::test]
async fn a_timeline_is_written_as_markdown_and_json() {
    let fixture = Fixture::new().await;
    let text = fixture
        .prints(&["export", "checkout", "--environment", "production"])
        .await;
    assert!(
        text.starts_with("# Timeline of checkout in production\n"),
        "{text}"
    );
    assert!(text.contains("ship &#124; it"), "{text}");
    assert_eq!(crate::text::clean(&text), text);
    let text = fixture
        .prints(&["export", "--format", "json", "--until", "2999-01-01"])
        .await;
    let rows: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 4);
    let text = fixture.prints(&["export", "--until", "2000-01-01"]).await;
    assert!(text.contains("No audit entries"), "{text}");
}

#[tokio::test]
async fn pages_hold_everything_once() {
    let fixture = Fixture::new().await;
    for size in [1, 2, 3, 4, 5] {
        let entries = pages::all(&fixture.entries(), ListParams::default(), size)
            .await
            .unwrap();
        let mut names: Vec<String> = entries.iter().map(|entry| entry.name_any()).collect();
        names.dedup();
        assert_eq!(names.len(), 4, "{size}");
    }
}

#[test]
fn a_moment_is_a_time_a_day_or_how_long_ago() {
    let now: Timestamp = NOW.parse().unwrap();
    for (text, expected) in [
        ("2026-01-31", Some("2026-01-31T00:00:00Z")),
        ("2026-01-31T18:00:00+02:00", Some("2026-01-31T16:00:00Z")),
        ("2h", Some("2026-03-01T10:00:00Z")),
        ("7d", Some("2026-02-22T12:00:00Z")),
        ("soon", None),
        ("", None),
        ("-2h", None),
    ] {
        let found = moment(text, now).ok().map(|moment| moment.to_string());
        assert_eq!(found.as_deref(), expected, "{text}");
    }
}

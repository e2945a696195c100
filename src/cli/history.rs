//! `bowline history`: what ran in an environment, since when, who put it there, and what became of it.

use clap::Args;
use jiff::Timestamp;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use super::connect::{self, Environment, Options};
use super::error::{Error, Exit};
use super::output::{self, Format};
use crate::api::audit::AuditEntry;
use crate::api::pin::Outcome;
use crate::api::{ReleasePin, names};
use crate::text;

/// What `history` can be told.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The component
    component: String,
    /// The environment
    #[arg(short, long, value_name = "NAME")]
    environment: String,
    /// The form of the result
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// Returns the revisions of a pin, newest first.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    now: Timestamp,
) -> Result<String, Error> {
    let connection = connect::connect(options, environment).await?;
    let (client, namespace) = (&connection.client, &connection.namespace);
    let name = names::pin(&arguments.component, &arguments.environment);
    let pins: Api<ReleasePin> = Api::namespaced(client.clone(), namespace);
    let Some(pin) = pins.get_opt(&name).await? else {
        let message = format!(
            "{} is not deployed in {}",
            arguments.component, arguments.environment
        );
        return Err(Error::new(Exit::Failed, message)
            .with_hint("bowline status shows what is deployed where"));
    };
    let entries: Api<AuditEntry> = Api::namespaced(client.clone(), namespace);
    let of_pin = ListParams::default().fields(&format!("spec.subject.name={name}"));
    let mut entries = entries.list(&of_pin).await?.items;
    entries.retain(|entry| entry.spec.subject.uid == pin.metadata.uid);
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.spec.revision));
    let outcomes = pin.status.map(|status| status.outcomes).unwrap_or_default();
    let outcome = |revision: i64| {
        outcomes
            .iter()
            .find(|outcome| outcome.generation == revision)
    };
    if matches!(arguments.output, Format::Json | Format::Yaml) {
        let rows: Vec<Value> = entries
            .iter()
            .map(|entry| json!({"entry": entry.spec, "outcome": outcome(entry.spec.revision)}))
            .collect();
        return Ok(match arguments.output {
            Format::Json => output::json(&rows),
            _ => output::yaml(&rows),
        });
    }
    let header = [
        "REVISION", "RELEASE", "ACTION", "BY", "AGE", "OUTCOME", "REASON",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for entry in &entries {
        let spec = &entry.spec;
        rows.push(vec![
            spec.revision.to_string(),
            spec.to
                .as_ref()
                .map(|to| to.name.clone())
                .unwrap_or_default(),
            format!("{:?}", spec.action),
            spec.actor.clone().unwrap_or_else(|| "?".to_owned()),
            text::age(now.as_second() - spec.at.0.as_second()),
            outcome(spec.revision).map(words).unwrap_or_default(),
            spec.reason.clone().unwrap_or_default(),
        ]);
    }
    Ok(output::table(&rows))
}

fn words(outcome: &Outcome) -> String {
    let word = match (outcome.healthy, &outcome.until) {
        (Some(true), _) => "healthy",
        (Some(false), _) => "unhealthy",
        (None, None) => "running",
        (None, Some(_)) => "unknown",
    };
    word.to_owned()
}

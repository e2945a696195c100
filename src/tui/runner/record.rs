//! Reads what is on record and checks it; writes a timeline to a file.

use std::io::Write;
use std::path::{Path, PathBuf};

use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;

use super::Session;
use crate::api::ReleasePin;
use crate::api::audit::AuditEntry;
use crate::connect::explain;
use crate::engine::audit::{self, Finding};
use crate::engine::pages::{self, PAGE};
use crate::engine::repository::verify;
use crate::tui::effect::Record;

/// Reads every entry of the namespace, and what the pins say of them.
pub(super) async fn record(session: &Session) -> Result<Box<Record>, String> {
    let mut read = once(session).await?;
    // Between a move and its entry, and between two reads, there is time; what is wrong stays wrong.
    if !read.verdict.is_valid() {
        read = once(session).await?;
    }
    Ok(Box::new(read))
}

async fn once(session: &Session) -> Result<Record, String> {
    let read = stored(session).await;
    let (pins, entries, problems) = read.map_err(|error| explain(&error))?;
    let mut verdict = match session.connection.repository.clone() {
        None => audit::verify(&pins, &entries),
        // The log is the record: nothing is chained, and commits are held to what they say.
        Some(repository) => {
            let verifying = tokio::task::spawn_blocking(move || verify(&repository, None));
            let verified = verifying.await.map_err(|error| error.to_string())?;
            verified.map_err(|error| error.to_string())?
        }
    };
    verdict.problems.extend(problems);
    Ok(Record { entries, verdict })
}

/// What is stored: the pins, the entries, and what of them cannot be read.
type Stored = (Vec<ReleasePin>, Vec<AuditEntry>, Vec<Finding>);

async fn stored(session: &Session) -> Result<Stored, kube::Error> {
    let (client, namespace) = (&session.connection.client, &session.connection.namespace);
    let pins: Api<ReleasePin> = Api::namespaced(client.clone(), namespace);
    // The pins first: an entry follows its move, so the other order would miss more of them.
    let pins = pages::all(&pins, ListParams::default(), PAGE).await?;
    let resource = ApiResource::erase::<AuditEntry>(&());
    let entries: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let objects = pages::all(&entries, ListParams::default(), PAGE).await?;
    let values = objects
        .iter()
        .filter_map(|object| serde_json::to_value(object).ok());
    let (entries, problems) = audit::read(values.collect());
    Ok((pins, entries, problems))
}

/// Writes a text to a file that is not there yet.
pub(super) fn export(path: &Path, text: &str) -> Result<PathBuf, String> {
    let written = std::fs::File::create_new(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    match written {
        Ok(()) => Ok(std::path::absolute(path).unwrap_or_else(|_| path.to_owned())),
        Err(error) => Err(format!("cannot write {}: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_already_is_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("incident.md");
        assert_eq!(export(&file, "one").unwrap(), file);
        let error = export(&file, "two").unwrap_err();
        assert!(
            error.starts_with("cannot write ") && error.contains("incident.md"),
            "{error}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
        assert!(export(&folder.path().join("no/where.md"), "x").is_err());
    }
}

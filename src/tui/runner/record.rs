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
use crate::engine::audit;
use crate::engine::pages::{self, PAGE};
use crate::tui::effect::Record;

/// Reads every entry of the namespace, and what the pins say of them.
pub(super) async fn record(session: &Session) -> Result<Box<Record>, String> {
    let mut read = once(session).await;
    // Between a move and its entry, and between two reads, there is time; what is wrong stays wrong.
    if matches!(&read, Ok(record) if !record.verdict.is_valid()) {
        read = once(session).await;
    }
    read.map(Box::new).map_err(|error| explain(&error))
}

async fn once(session: &Session) -> Result<Record, kube::Error> {
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
    let mut verdict = audit::verify(&pins, &entries);
    verdict.problems.extend(problems);
    Ok(Record { entries, verdict })
}

/// Writes a text to a file that is not there yet.
pub(super) fn export(path: &Path, text: &str) -> Result<PathBuf, String> {
    let written = std::fs::File::create_new(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    match written {
        Ok(()) => Ok(std::path::absolute(path).unwrap_or_else(|_| path.to_owned())),
        Err(error) => Err(format!("{} cannot be written: {error}", path.display())),
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
        assert!(error.contains("incident.md cannot be written"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
        assert!(export(&folder.path().join("no/where.md"), "x").is_err());
    }
}

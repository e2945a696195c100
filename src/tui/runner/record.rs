//! Reads and verifies the audit trail. Writes an exported timeline to a file.

use std::io::Write;
use std::path::{Path, PathBuf};

use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;

use super::Session;
use crate::api::ReleasePin;
use crate::api::bowline::audit::AuditEntry;
use crate::connect::explain;
use crate::effect::Record;
use crate::engine::audit::{self, Finding};
use crate::engine::pages::{self, PAGE};
use crate::gitops::verify::verify;
use crate::subjects::release_pin::kind::live;

/// Reads all audit entries of the namespace, and checks them against the ReleasePins.
pub(super) async fn record(session: &Session) -> Result<Box<Record>, String> {
    let mut read = once(session).await?;
    // A change and its audit entry are written and read separately, so the first read may contain only one of them.
    // Therefore report a problem only if a second read finds it too.
    if !read.verdict.is_valid() {
        read = once(session).await?;
    }
    Ok(Box::new(read))
}

async fn once(session: &Session) -> Result<Record, String> {
    let read = stored(session).await;
    let (pins, entries, problems) = read.map_err(|error| explain(&error))?;
    let mut verdict = match session.connection.repository.clone() {
        None => audit::verify(&live(&pins), &entries),
        // In a repository, the git log is the audit trail. It has no hash chain, so bowline compares each commit
        // message with the changes of its commit.
        Some(repository) => {
            let verifying = tokio::task::spawn_blocking(move || verify(&repository.tree, None));
            let verified = verifying.await.map_err(|error| error.to_string())?;
            verified.map_err(|error| error.to_string())?
        }
    };
    verdict.problems.extend(problems);
    Ok(Record { entries, verdict })
}

/// The ReleasePins, the audit entries, and a finding for each entry that cannot be parsed.
type Stored = (Vec<ReleasePin>, Vec<AuditEntry>, Vec<Finding>);

async fn stored(session: &Session) -> Result<Stored, kube::Error> {
    let (client, namespace) = (&session.connection.client, &session.connection.namespace);
    let pins: Api<ReleasePin> = Api::namespaced(client.clone(), namespace);
    // Read the ReleasePins before the audit entries, because an entry is written after its change. In the other
    // order, more entries would be missing.
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

/// Writes a text to a new file, and returns the absolute path of the file. Fails if the file exists.
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

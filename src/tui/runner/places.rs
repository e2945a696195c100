//! Lists the namespaces for the completions of `:ns` and `:ctx`.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::Session;
use crate::api::ReleasePin;
use crate::connect::explain;
use crate::engine::pages::{self, PAGE};

/// Returns the namespaces that the user can switch to. In a cluster, these are all namespaces; in an embedded store
/// or a repository, those with ReleasePins. The current namespace is always one of them.
pub(super) async fn namespaces(session: &Session) -> Result<Vec<String>, String> {
    let connection = &session.connection;
    let client = connection.client.clone();
    let all = ListParams::default();
    let found: Result<BTreeSet<String>, kube::Error> = match connection.target.is_cluster() {
        true => {
            let found = pages::all(&Api::<Namespace>::all(client), all, PAGE).await;
            found.map(|found| found.iter().map(ResourceExt::name_any).collect())
        }
        false => {
            let found = pages::all(&Api::<ReleasePin>::all(client), all, PAGE).await;
            found.map(|found| found.iter().filter_map(ResourceExt::namespace).collect())
        }
    };
    let mut found = found.map_err(|error| explain(&error))?;
    found.insert(connection.namespace.clone());
    Ok(found.into_iter().collect())
}

//! Checks what must exist before a verb starts: kinds of a cluster, and the file of an embedded store. If something
//! is missing, bowline refuses the verb.

use kube::core::ApiResource;

use super::connect::kinds::kind;
use super::{Verb, release};
use crate::api::{
    Addon, AuditEntry, Component, ComponentEnvSnapshot, ComponentTypeDefinition,
    DeploymentPipeline, EnvSettings, Environment, Release, ReleasePin, Workload,
};

/// Returns the kinds that a verb reads or writes, which the cluster must have. Empty for verbs that work on any kind,
/// and for verbs that install the kinds.
pub(super) fn kinds(verb: &Verb) -> Vec<ApiResource> {
    match verb {
        Verb::Act(verb) if verb.subject().is_some() => Vec::new(),
        Verb::History(arguments) if arguments.subject().is_some() => Vec::new(),
        Verb::Diff(arguments) if arguments.subject().is_some() => Vec::new(),
        Verb::Revisions(verb) if verb.subject().is_some() => Vec::new(),
        Verb::Act(_) | Verb::Mark(_) => {
            [matrix(), vec![kind::<EnvSettings>(), kind::<AuditEntry>()]].concat()
        }
        Verb::Gc(_) | Verb::Release(release::Verb::Gc(_)) => {
            let others = vec![kind::<ComponentEnvSnapshot>(), kind::<AuditEntry>()];
            [matrix(), others].concat()
        }
        Verb::Status(_) | Verb::Diff(_) | Verb::Check(_) => matrix(),
        Verb::History(_) | Verb::Revisions(_) | Verb::Audit(_) => {
            vec![kind::<ReleasePin>(), kind::<AuditEntry>()]
        }
        Verb::Release(release::Verb::Create(_)) => {
            [definitions(), vec![kind::<Release>()]].concat()
        }
        Verb::Release(_) => vec![kind::<Release>()],
        Verb::Render(_) => {
            let others = vec![kind::<EnvSettings>(), kind::<Environment>()];
            [definitions(), others].concat()
        }
        Verb::Demo(_)
        | Verb::Screenshot(_)
        | Verb::Get(_)
        | Verb::Apply(_)
        | Verb::Delete(_)
        | Verb::Crds(_)
        | Verb::Install(_)
        | Verb::Uninstall(_)
        | Verb::Controller(_)
        | Verb::Serve(_)
        | Verb::Theme(_)
        | Verb::Version(_)
        | Verb::Completions(_)
        | Verb::Man(_)
        | Verb::CredentialPlugin { .. } => Vec::new(),
    }
}

/// Returns whether the file of an embedded store must exist before a verb starts. If a wrong path were accepted, the
/// verb would create an empty store and hide the mistake. Verbs that create objects, and `version --server`, accept a
/// new store.
pub(super) fn store(verb: &Verb) -> bool {
    !matches!(
        verb,
        Verb::Apply(_)
            | Verb::Release(release::Verb::Create(_))
            | Verb::Controller(_)
            | Verb::Serve(_)
            | Verb::Version(_)
    )
}

/// Returns the kinds that the cluster must have to show the matrix.
fn matrix() -> Vec<ApiResource> {
    vec![
        kind::<ReleasePin>(),
        kind::<Release>(),
        kind::<Environment>(),
        kind::<DeploymentPipeline>(),
    ]
}

/// Returns the kinds that the cluster must have to read the definitions of a release.
fn definitions() -> Vec<ApiResource> {
    vec![
        kind::<Component>(),
        kind::<ComponentTypeDefinition>(),
        kind::<Addon>(),
        kind::<Workload>(),
    ]
}

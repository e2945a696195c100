//! Asks the API server whether the user may do something.

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use kube::core::ApiResource;

/// A verb on the objects of a kind in one namespace.
#[derive(Clone, Copy, Debug)]
pub struct Right {
    /// The verb, such as `patch`.
    pub verb: &'static str,
    /// Returns the API resource of the kind.
    pub resource: fn() -> ApiResource,
}

impl Right {
    /// Returns the right to list the objects of a kind.
    pub const fn list(resource: fn() -> ApiResource) -> Self {
        let verb = "list";
        Self { verb, resource }
    }

    /// Returns the right to patch an object of a kind.
    pub const fn patch(resource: fn() -> ApiResource) -> Self {
        let verb = "patch";
        Self { verb, resource }
    }

    /// Returns the question whether the user has this right; for all objects, or for the object `name`.
    pub fn on(self, namespace: &str, name: Option<&str>) -> ResourceAttributes {
        let resource = (self.resource)();
        ResourceAttributes {
            group: Some(resource.group),
            resource: Some(resource.plural),
            verb: Some(self.verb.to_owned()),
            namespace: Some(namespace.to_owned()),
            name: name.map(str::to_owned),
            ..ResourceAttributes::default()
        }
    }
}

/// The answer of the server that the user does not have a right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    verb: String,
    resource: String,
    /// The reason of the server, if it gave one.
    pub why: Option<String>,
}

impl std::fmt::Display for Lacking {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (verb, resource) = (&self.verb, &self.resource);
        write!(out, "no role grants you the verb {verb} on {resource}")
    }
}

impl Lacking {
    /// Describes a request that the server has denied.
    pub fn of(right: Right) -> Self {
        Self {
            verb: right.verb.to_owned(),
            resource: (right.resource)().plural,
            why: None,
        }
    }
}

/// Asks whether the user has a right. None if the server does not answer: then the server decides when bowline
/// writes.
pub async fn ask(client: &Client, question: ResourceAttributes) -> Option<Result<(), Lacking>> {
    let (verb, resource) = (question.verb.clone(), question.resource.clone());
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(question),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await;
    let status = answer.ok()?.status?;
    Some(match status.allowed {
        true => Ok(()),
        false => Err(Lacking {
            verb: verb.unwrap_or_default(),
            resource: resource.unwrap_or_default(),
            why: status.reason.filter(|reason| !reason.is_empty()),
        }),
    })
}

/// Returns the first of these rights that the user does not have; None if the user has all of them.
pub async fn lacking(
    client: &Client,
    questions: impl IntoIterator<Item = ResourceAttributes>,
) -> Option<Lacking> {
    let questions = questions.into_iter();
    let answers = join_all(questions.map(|question| ask(client, question))).await;
    answers.into_iter().flatten().find_map(Result::err)
}

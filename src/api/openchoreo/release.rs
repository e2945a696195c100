//! Release: the immutable lockfile of a component.
//!
//! This module defines only the types; the module `resolve` reads the referenced definitions.

use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;
use kube::{CustomResource, ResourceExt};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::api::annotation::{self, UnreadableAnnotation};
use crate::api::labels;
use crate::api::schema::Object;

/// All definitions of one version of a component.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "openchoreo.dev",
    version = "v1alpha1",
    kind = "Release",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "A Release is the lockfile of a component: all definitions of one version, by git reference or embedded. Its spec never changes.",
    shortname = "rel",
    category = "bowline",
    selectable = ".spec.component.name",
    printcolumn(
        name = "Component",
        type_ = "string",
        json_path = ".spec.component.name"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".metadata.annotations['bowline\\.dev/version']",
        description = "The version that the user gave the release"
    ),
    printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".spec.workload.spec.image"
    ),
    printcolumn(
        name = "Delete Denied",
        type_ = "string",
        json_path = ".metadata.labels['bowline\\.dev/pinned']",
        description = "Whether a policy refuses to delete the release, because a ReleasePin names it or named it, or an action claimed it; gc removes this protection from a release that is no longer in use"
    ),
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.componentTypeDefinition.name",
        priority = 1
    ),
    printcolumn(
        name = "Size",
        type_ = "string",
        json_path = ".metadata.annotations['bowline\\.dev/size']",
        priority = 1
    ),
    printcolumn(
        name = "Hash",
        type_ = "string",
        json_path = ".metadata.annotations['bowline\\.dev/content-hash']",
        priority = 1
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.component.content) || has(self.component.content.compressed) || (has(self.component.content.kind) && self.component.content.kind == 'Component')",
        "message": "component.content must be a Component"
    },
    {
        "rule": "!has(self.componentTypeDefinition.content) || has(self.componentTypeDefinition.content.compressed) || (has(self.componentTypeDefinition.content.kind) && self.componentTypeDefinition.content.kind == 'ComponentTypeDefinition')",
        "message": "componentTypeDefinition.content must be a ComponentTypeDefinition"
    },
    {
        "rule": "!has(self.addons) || self.addons.all(a, !has(a.content) || has(a.content.compressed) || (has(a.content.kind) && a.content.kind == 'Addon'))",
        "message": "the content of each addon must be an Addon"
    }
]))]
pub struct ReleaseSpec {
    /// The Component.
    pub component: Reference,
    /// The ComponentTypeDefinition of the component.
    pub component_type_definition: Reference,
    /// The Addon of each addon instance of the component.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name", "instanceId"])
    )]
    pub addons: Vec<AddonReference>,
    /// A full copy of the Workload. It is never a reference, because a build makes the Workload and git does not
    /// contain it.
    #[schemars(schema_with = "workload_schema")]
    pub workload: Object,
}

fn workload_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {
            "apiVersion": {"type": "string", "minLength": 1},
            "kind": {"type": "string", "enum": ["Workload"]}
        },
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-preserve-unknown-fields": true
    })
}

/// A definition, by git reference or embedded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.gitRef) != has(self.content)",
    "message": "a reference must have exactly one of gitRef and content"
}]))]
pub struct Reference {
    /// The name of the definition.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The repository, the commit and the file that contain the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_ref: Option<GitRef>,
    /// The definition: either a whole object, or only the field `compressed` with the gzip of the object in
    /// base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
}

/// The definition of one addon instance, by git reference or embedded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.gitRef) != has(self.content)",
    "message": "a reference must have exactly one of gitRef and content"
}]))]
pub struct AddonReference {
    /// The name of the Addon.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The id of the addon instance of the component.
    #[schemars(length(min = 1, max = 63))]
    pub instance_id: String,
    /// The repository, the commit and the file that contain the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_ref: Option<GitRef>,
    /// The definition: either a whole object, or only the field `compressed` with the gzip of the object in
    /// base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
}

/// A file at a commit of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRef {
    /// The address of the repository.
    #[schemars(length(min = 1, max = 2048))]
    pub repository: String,
    /// The full id of the commit: 40 or 64 lowercase hex digits.
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-validations" = [{
            "rule": "self.matches('^([0-9a-f]{40}|[0-9a-f]{64})$')",
            "message": "revision must be the full id of a commit, 40 or 64 lowercase hex digits; for a short id, a branch or a tag: git rev-parse REVISION"
        }])
    )]
    pub revision: String,
    /// The path of the file in the repository.
    #[schemars(length(min = 1, max = 4096))]
    pub path: String,
}

/// An embedded definition: a whole object, or `{compressed: BASE64}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Content(pub Object);

impl Content {
    /// The name of the only field in compressed content.
    pub const COMPRESSED: &str = "compressed";

    /// Makes compressed content from a gzip stream, as base64 text.
    pub fn from_compressed(base64: impl Into<String>) -> Self {
        let mut fields = Object::new();
        fields.insert(Self::COMPRESSED.to_owned(), base64.into().into());
        Self(fields)
    }

    /// Returns the base64 text of the compressed object; None if the content is not compressed.
    pub fn compressed(&self) -> Option<&str> {
        self.0.get(Self::COMPRESSED)?.as_str()
    }

    /// Returns the embedded object; None if the content is compressed.
    pub fn whole(&self) -> Option<&Object> {
        self.compressed().is_none().then_some(&self.0)
    }
}

impl JsonSchema for Content {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Content".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {
                "apiVersion": {"type": "string", "minLength": 1},
                "kind": {"type": "string", "minLength": 1},
                "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "compressed": {
                    "description": "The gzip of the object's JSON or YAML, in base64.",
                    "type": "string",
                    "minLength": 1,
                    "pattern": "^[A-Za-z0-9+/]+={0,2}$"
                }
            },
            // A validation rule does not see unknown fields, but `maxProperties` counts them.
            "anyOf": [
                {"not": {"required": ["compressed"]}},
                {"maxProperties": 1}
            ],
            "x-kubernetes-map-type": "atomic",
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-validations": [{
                "rule": "has(self.compressed) ? !has(self.apiVersion) && !has(self.kind) && !has(self.metadata) && !has(self.spec) : has(self.apiVersion) && has(self.kind)",
                "message": "content must be a whole object with apiVersion and kind, or have no field other than `compressed`"
            }]
        })
    }
}

/// A user's mark on a Release: bad or good. Stored as JSON in the annotation `bowline.dev/mark`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// Whether the user marked the Release as bad or as good.
    pub verdict: Verdict,
    /// The user who marked the Release.
    pub by: String,
    /// The time at which the user marked the Release.
    pub at: Time,
    /// The user's reason for the mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The id of the operation that wrote the mark. A retry of the operation has the same id, so it does not
    /// write twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The hash of the marked content, in the mark of a workload's revision: other programs copy the
    /// annotations of one revision to another. Absent in the mark of a Release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

impl Mark {
    /// Returns whether the mark is about the content with this hash.
    pub fn is_on(&self, hash: &str) -> bool {
        self.hash.as_deref().is_none_or(|marked| marked == hash)
    }
}

/// Whether a marked Release may be promoted or be the target of a rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// bowline refuses to promote the Release and to roll back to it.
    Bad,
    /// The Release is not or no longer bad, so bowline accepts it.
    Good,
}

impl Verdict {
    /// Returns the verdict as a word: `bad` or `good`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bad => "bad",
            Self::Good => "good",
        }
    }

    /// Parses the verdict on the content with this hash; None if the mark is about another content.
    pub fn on_content(annotation: &str, hash: &str) -> Option<Self> {
        match serde_json::from_str::<Mark>(annotation) {
            Ok(mark) => mark.is_on(hash).then_some(mark.verdict),
            Err(_) => Some(Self::Bad),
        }
    }

    /// Parses the verdict from the annotation. An invalid annotation means bad, because its author wanted to
    /// warn.
    pub fn of_mark(annotation: &str) -> Self {
        serde_json::from_str::<Mark>(annotation).map_or(Self::Bad, |mark| mark.verdict)
    }
}

/// Announces that a ReleasePin will name a Release, so that garbage collection keeps the Release. Stored as
/// JSON in the annotation `bowline.dev/claimed-at`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The time at which the claim was placed or last renewed.
    pub at: Time,
    /// The id of the operation that placed the claim.
    pub operation: String,
}

impl Claim {
    /// Returns the claim as JSON, for the annotation.
    pub fn to_annotation(&self) -> String {
        serde_json::to_string(self).expect("BUG: a claim is JSON")
    }
}

/// Returns the time of the last claim on a release; None if there is no claim. This is the later one of the
/// time in the claim and the time at which the server stored the claim, because the clocks can differ.
pub fn claimed_at(metadata: &ObjectMeta) -> Option<Timestamp> {
    let annotation = metadata.annotations.as_ref()?.get(labels::CLAIMED_AT)?;
    let said: Option<Claim> = serde_json::from_str(annotation).ok();
    let field = format!("f:{}", labels::CLAIMED_AT);
    let managers = metadata.managed_fields.iter().flatten();
    let seen = managers.filter_map(|manager| {
        let fields = &manager.fields_v1.as_ref()?.0;
        fields
            .get("f:metadata")?
            .get("f:annotations")?
            .get(&field)?;
        Some(manager.time.as_ref()?.0)
    });
    let said = said.map(|claim| claim.at.0);
    Some(seen.chain(said).max().unwrap_or_default())
}

impl Release {
    /// Reads the mark of the release; None if there is no mark.
    pub fn mark(&self) -> Result<Option<Mark>, UnreadableAnnotation> {
        annotation::read(self, labels::MARK, "Release")
    }

    /// Reads the claim on the release; None if there is no claim.
    pub fn claim(&self) -> Result<Option<Claim>, UnreadableAnnotation> {
        annotation::read(self, labels::CLAIMED_AT, "Release")
    }

    /// Returns whether the release has the label `bowline.dev/pinned`, which protects it from deletion.
    pub fn is_pinned(&self) -> bool {
        self.labels().get(labels::PINNED).map(String::as_str) == Some(labels::PINNED_TRUE)
    }
}

/// A full commit id: 40 or 64 lowercase hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Revision(String);

/// The error if a text is not a full commit id. Contains the text.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "revision {0:?} is not the full id of a commit (40 or 64 lowercase hex digits); `git rev-parse {0}` prints it"
)]
pub struct NotARevision(String);

impl FromStr for Revision {
    type Err = NotARevision;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let full = matches!(text.len(), 40 | 64)
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if full {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotARevision(text.to_owned()))
        }
    }
}

impl Revision {
    /// Returns the commit id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl GitRef {
    /// Parses the revision of the reference. Fails if the revision is not a full commit id.
    pub fn commit(&self) -> Result<Revision, NotARevision> {
        self.revision.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_full_lowercase_commit_ids_are_revisions() {
        for (text, full) in [
            ("a".repeat(40), true),
            ("0123456789abcdef".repeat(4), true),
            ("a1b2c3d4".into(), false),
            ("A".repeat(40), false),
            ("g".repeat(40), false),
            ("a".repeat(41), false),
            ("main".into(), false),
            (String::new(), false),
        ] {
            assert_eq!(text.parse::<Revision>().is_ok(), full, "{text:?}");
        }
    }

    #[test]
    fn content_is_whole_or_compressed() {
        let whole: Content =
            serde_json::from_value(json!({"apiVersion": "v1", "kind": "Addon"})).unwrap();
        assert!(whole.compressed().is_none());
        assert_eq!(whole.whole().unwrap()["kind"], "Addon");
        let packed = Content::from_compressed("H4sI");
        assert_eq!(packed.compressed(), Some("H4sI"));
        assert!(packed.whole().is_none());
        assert_eq!(
            serde_json::to_value(packed).unwrap(),
            json!({"compressed": "H4sI"})
        );
    }

    #[test]
    fn annotations_are_read_or_named() {
        let mut release = Release::default();
        release.metadata.name = Some("checkout-1".into());
        assert_eq!(release.mark().unwrap(), None);
        let annotations = release.annotations_mut();
        annotations.insert(
            labels::MARK.into(),
            r#"{"verdict":"bad","by":"ana","at":"2026-01-02T03:04:05Z","note":"leaks"}"#.into(),
        );
        annotations.insert(labels::CLAIMED_AT.into(), "yesterday".into());
        let mark = release.mark().unwrap().unwrap();
        assert_eq!((mark.verdict, mark.by.as_str()), (Verdict::Bad, "ana"));
        let error = release.claim().unwrap_err().to_string();
        assert!(
            error.contains("bowline.dev/claimed-at") && error.contains("checkout-1"),
            "{error}"
        );
    }

    #[test]
    fn a_claim_is_as_new_as_anybody_says() {
        let claim = |at: &str| format!(r#"{{"at":"{at}","operation":"op"}}"#);
        let fields = json!({"f:metadata": {"f:annotations": {"f:bowline.dev/claimed-at": {}}}});
        let noon = "2026-01-06T12:00:00Z";
        for (annotation, seen, expected) in [
            (None, None, None),
            (Some(claim(noon)), None, Some(noon)),
            (Some(claim(noon)), Some("2026-01-06T11:00:00Z"), Some(noon)),
            (Some(claim("2026-01-06T11:00:00Z")), Some(noon), Some(noon)),
            (Some("nonsense".to_owned()), Some(noon), Some(noon)),
            (
                Some("nonsense".to_owned()),
                None,
                Some("1970-01-01T00:00:00Z"),
            ),
        ] {
            let managed =
                seen.map(|time| json!([{"manager": "m", "time": time, "fieldsV1": fields}]));
            let metadata = json!({
                "annotations": annotation.map(|value| json!({labels::CLAIMED_AT: value})),
                "managedFields": managed,
            });
            let read: ObjectMeta = serde_json::from_value(metadata.clone()).unwrap();
            let expected = expected.map(|at: &str| at.parse::<Timestamp>().unwrap());
            assert_eq!(claimed_at(&read), expected, "{metadata}");
        }
    }

    #[test]
    fn only_the_value_true_protects() {
        let mut release = Release::default();
        assert!(!release.is_pinned());
        for (value, pinned) in [("true", true), ("false", false), ("", false)] {
            release
                .labels_mut()
                .insert(labels::PINNED.into(), value.into());
            assert_eq!(release.is_pinned(), pinned);
        }
    }
}

//! Errors of pipelines, for which bowline refuses promotions.

/// A pipeline whose paths have a cycle.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "the promotion paths lead in a circle through {}; remove one of the paths between them",
    .environments.join(", ")
)]
pub struct PipelineCycle {
    /// The environments that cannot be ordered.
    pub environments: Vec<String>,
}

/// An error of the pipelines of a namespace. bowline refuses promotions until it is fixed.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum PipelineFault {
    /// The paths of the only pipeline have a cycle.
    #[error("DeploymentPipeline {pipeline}: {cycle}")]
    Cycle {
        /// The name of the pipeline.
        pipeline: String,
        /// The environments of the cycle.
        cycle: PipelineCycle,
    },
    /// The namespace has more than one pipeline.
    #[error(
        "namespace {namespace} has {} DeploymentPipelines ({}), but only one is allowed; bowline refuses promotions until you delete the others",
        .pipelines.len(),
        .pipelines.join(", ")
    )]
    Several {
        /// The namespace of the pipelines.
        namespace: String,
        /// The names of the pipelines.
        pipelines: Vec<String>,
    },
}

impl PipelineFault {
    /// Returns how to fix the error. It names no pipeline to delete: only the user knows which one stays.
    pub fn hint(&self) -> String {
        const KIND: &str = "deploymentpipelines.openchoreo.dev";
        match self {
            Self::Cycle { pipeline, .. } => format!("kubectl edit {KIND} {pipeline}"),
            Self::Several { pipelines, .. } => format!(
                "delete all but one of {}: kubectl delete {KIND} NAME",
                pipelines.join(", ")
            ),
        }
    }

    /// Returns the reason for the condition that reports the error.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Cycle { .. } => "PipelineCycle",
            Self::Several { .. } => "SeveralPipelines",
        }
    }
}

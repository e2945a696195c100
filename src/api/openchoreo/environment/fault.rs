//! The errors of pipelines. While a namespace has such an error, bowline refuses its promotions.

/// The error of a pipeline whose promotion paths have a cycle.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "the promotion paths lead in a circle through {}; remove one of the paths between them",
    .environments.join(", ")
)]
pub struct PipelineCycle {
    /// The environments of the cycle, and those that come after it.
    pub environments: Vec<String>,
}

/// An error of the pipelines of a namespace. bowline refuses promotions until a user fixes it.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum PipelineFault {
    /// The promotion paths of the only pipeline have a cycle.
    #[error("DeploymentPipeline {pipeline}: {cycle}")]
    Cycle {
        /// The name of the pipeline.
        pipeline: String,
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
    /// Returns a command that helps to fix the error. The command names no pipeline to delete, because only
    /// the user knows which one to keep.
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

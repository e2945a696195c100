//! The faults of pipelines. bowline refuses promotions in a namespace with such a fault.

/// The error if the promotion paths of a pipeline have a cycle.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "the promotion paths lead in a circle through {}; remove one of the paths between them",
    .environments.join(", ")
)]
pub struct PipelineCycle {
    /// The environments of the cycle, and the environments that come after the cycle.
    pub environments: Vec<String>,
}

/// A fault in the pipelines of a namespace. bowline refuses promotions there until a user fixes the fault.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum PipelineFault {
    /// The namespace has one pipeline, and its promotion paths have a cycle.
    #[error("DeploymentPipeline {pipeline}: {cycle}")]
    Cycle {
        /// The name of the pipeline with the cycle.
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
        /// The namespace with more than one pipeline.
        namespace: String,
        /// The names of all pipelines in the namespace.
        pipelines: Vec<String>,
    },
}

impl PipelineFault {
    /// Returns a command that helps the user to fix the fault. The command deletes nothing, because only the
    /// user knows which pipeline to keep.
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

    /// Returns the reason for the condition that reports the fault.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Cycle { .. } => "PipelineCycle",
            Self::Several { .. } => "SeveralPipelines",
        }
    }
}
